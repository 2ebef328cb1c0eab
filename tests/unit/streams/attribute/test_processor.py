"""The attribute role as a runner drives it."""

from __future__ import annotations

from schemas import topics
from schemas.codec import MAJOR, MINOR
from schemas.flow import DeadLetter, Emitted, Out, Partition, Tick
from schemas.telemetry import v1
from streams.processors.attribute import AttributeProcessor
from streams.settings import Attribute
from tests.fakes.log_reader import LogReader
from tests.unit.streams.attribute.build import allocation, at, batch, record, snapshot

OWNED = frozenset({Partition(topics.SAMPLES, 0), Partition(topics.ALLOCATIONS, 0)})


def processor() -> AttributeProcessor:
    return AttributeProcessor.of(Attribute(), rebuild_seconds=120)


def pods(emitted: list[Emitted]) -> list[str]:
    batches = [v1.AttributedBatch.FromString(out.value or b"") for out in emitted if isinstance(out, Out)]
    return [row.workload.pod for b in batches for row in b.rows]


def test_usage_comes_out_keyed_by_node_with_our_headers() -> None:
    (out,) = processor().process([record(snapshot(5, allocation("a", 0))), record(batch(5))])
    assert isinstance(out, Out)
    assert (out.topic, out.key, out.timestamp_ns) == (topics.USAGE, b"c/n1", None)
    assert dict(out.headers)["schema-version"] == f"{MAJOR}.{MINOR}".encode()
    assert pods([out]) == ["a"]


def test_restore_reads_the_allocations_and_a_replay_gives_the_same_rows() -> None:
    allocations = [record(snapshot(5, allocation("a", 0))), record(snapshot(10, allocation("a", 0, 6), allocation("b", 6)))]
    inputs = [allocations[0], record(batch(5)), record(batch(7)), allocations[1]]
    before, after = processor(), processor()
    once = before.process(inputs)
    after.restore(LogReader({(topics.ALLOCATIONS, 0): allocations}), OWNED)
    assert after.process(inputs) == once
    assert pods(list(once)) == ["a", "b"]


def test_a_clock_that_was_ahead_does_not_hide_who_holds_a_device_until_that_time_has_come() -> None:
    ahead = [record(snapshot(86_400, allocation("old", 86_000)), 0), record(batch(86_400, energy=1), 0, arrived=1)]
    right = [record(batch(9, energy=2), 1), record(snapshot(10, allocation("new", 5)), 1), record(batch(10, energy=5), 2)]
    one = processor()
    assert pods(list(one.process([*ahead, *right]))) == ["old", "", "new"]  # unknown until the next snapshot
    again = processor()
    again.restore(LogReader({(topics.ALLOCATIONS, 0): [ahead[0], right[1]]}), OWNED)
    assert pods(list(again.process([ahead[0], right[2]]))) == ["new"]


def test_restore_forgets_what_it_does_not_own() -> None:
    one = processor()
    one.process([record(snapshot(5, allocation("a", 0))), record(batch(9))])
    one.restore(LogReader({(topics.ALLOCATIONS, 3): [record(snapshot(5, allocation("a", 0)))]}), OWNED)
    assert one.waiting_samples == 0
    assert one.process([record(batch(5))]) == []


def test_a_bad_record_is_a_dead_letter_and_the_rest_goes_on() -> None:
    bad = record(batch(5))._replace(value=b"\xff\xff")
    letter, out = processor().process([record(snapshot(5, allocation("a", 0))), bad, record(batch(5))])
    assert isinstance(letter, DeadLetter)
    assert letter.record is bad
    assert "SampleBatch" in letter.reason
    assert pods([out]) == ["a"]


def test_a_bad_snapshot_does_not_stop_the_restore() -> None:
    good, bad = record(snapshot(5, allocation("a", 0))), record(snapshot(5))._replace(headers=())
    one = processor()
    one.restore(LogReader({(topics.ALLOCATIONS, 0): [bad, good]}), OWNED)
    assert pods(list(one.process([record(batch(5))]))) == ["a"]


def test_a_deleted_node_is_no_dead_letter() -> None:
    assert processor().process([record(snapshot(5))._replace(value=None)]) == []


def test_a_tick_lets_samples_go_and_counts_them() -> None:
    one = processor()
    assert one.process([record(batch(5), arrived=5)]) == []
    assert pods(list(one.tick(Tick(at(20))))) == [""]
    assert one.dropped == {"no_allocations_in_time": 1}


def test_what_is_rewound_covers_the_longest_wait() -> None:
    assert AttributeProcessor.of(Attribute(wait_seconds=60), rebuild_seconds=120).rewind_seconds == 300


def test_sharing_that_makes_a_message_too_large_is_sent_in_parts() -> None:
    many = [allocation(f"{n:02000}", 0) for n in range(100)]
    outs = list(processor().process([record(snapshot(5, *many)), record(batch(5, "d0", "d0", "d0", "d0"))]))
    assert len(outs) == 2
    assert len(pods(outs)) == 400
