"""What every bus promises to a role, on the in-memory one, the embedded one and Apache Kafka."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest

from schemas.codec import HEADERS, MAJOR, MINOR
from schemas.flow import Busy, Record
from schemas.identity import partition_of
from schemas.topics import ALLOCATIONS, DLQ, SAMPLES, USAGE
from tests.conformance.bus.conftest import AnyBus
from tests.conformance.bus.processors import Relay
from xpulse.bus.dlq import read_letter
from xpulse.bus.rejects import TooManyRejected
from xpulse.testing import Crashed


def values(records: Sequence[Record]) -> list[bytes]:
    return sorted(r.value or b"" for r in records)


def test_everything_arrives_in_the_partition_of_its_key_with_its_headers(any_bus: AnyBus) -> None:
    for i in range(30):
        any_bus.send(SAMPLES, b"c/n%d" % i, b"v%02d" % i)
    relay = Relay()
    status = any_bus.run(relay, lambda: len(relay.seen) >= 30)
    arrived = any_bus.records(USAGE)
    assert values(arrived) == [b"v%02d" % i for i in range(30)]
    assert all(r.partition == partition_of(r.key or b"", 4) and r.headers == HEADERS for r in arrived)
    assert (status.processed_total, status.published_total, status.foreign_keys_total) == (30, 30, 0)


def test_a_second_life_goes_on_where_the_first_ended(any_bus: AnyBus) -> None:
    any_bus.send(SAMPLES, b"c/n", b"one")
    first = Relay()
    any_bus.run(first, lambda: len(first.seen) >= 1)
    any_bus.send(SAMPLES, b"c/n", b"two")
    second = Relay()
    any_bus.run(second, lambda: len(second.seen) >= 1)
    assert values(second.seen) == [b"two"]
    assert values(any_bus.records(USAGE)) == [b"one", b"two"]


def test_a_crash_between_two_outputs_repeats_and_loses_nothing(any_bus: AnyBus) -> None:
    for i in range(20):
        any_bus.send(SAMPLES, b"c/n", b"v%02d" % i)
    first, second = Relay(), Relay()
    with contextlib.suppress(Crashed):
        any_bus.run(first, lambda: False, crash_after=13)
    any_bus.run(second, lambda: bool(second.seen) and second.seen[-1].offset == 19)
    arrived = values(any_bus.records(USAGE))
    assert set(arrived) == {b"v%02d" % i for i in range(20)}
    assert [r.offset for r in second.seen] == list(range(second.seen[0].offset, 20))


def test_busy_brings_the_same_batch_again(any_bus: AnyBus) -> None:
    tries: list[int] = []

    def busy_twice(records: Sequence[Record]) -> None:
        tries.append(len(records))
        if len(tries) <= 2:
            raise Busy(0.05, "the store is away")

    relay = Relay(before=busy_twice)
    any_bus.send(SAMPLES, b"c/n", b"v")
    status = any_bus.run(relay, lambda: len(relay.seen) >= 1)
    assert len(tries) == 3
    assert values(any_bus.records(USAGE)) == [b"v"]
    assert status.retries_total >= 2


def test_a_dead_letter_carries_where_it_came_from(any_bus: AnyBus) -> None:
    any_bus.send(SAMPLES, b"c/n", b"bad one", (*HEADERS, ("trace", b"t")))
    any_bus.send(SAMPLES, b"c/n", b"good")
    relay = Relay()
    status = any_bus.run(relay, lambda: len(relay.seen) >= 2)
    (record,) = any_bus.records(DLQ)
    letter = read_letter(record)
    source = partition_of(b"c/n", 4)
    assert (letter.topic, letter.source_partition, letter.source_offset) == (SAMPLES, source, 0)
    assert (letter.key, letter.value, letter.reason, letter.schema_version) == (b"c/n", b"bad one", "begins with bad", f"{MAJOR}.{MINOR}")
    assert ("trace", b"t") in letter.headers
    assert letter.group.endswith("xpulse.attribute")
    assert values(any_bus.records(USAGE)) == [b"good"]
    assert status.dead_letters_total == 1


def test_mostly_rejected_stops_the_role(any_bus: AnyBus) -> None:
    for i in range(1100):
        any_bus.send(SAMPLES, b"c/n%d" % (i % 7), b"bad")
    with pytest.raises(TooManyRejected, match=r"attribute: \d+ of the last \d+ records were rejected.*begins with bad"):
        any_bus.run(Relay(), lambda: False)
    assert len(any_bus.records(DLQ)) < 1100


def test_windowed_state_is_rebuilt_and_its_outputs_are_not_repeated(any_bus: AnyBus) -> None:
    for i in range(4):
        any_bus.send(SAMPLES, b"c/n", (b"bad%d" if i == 2 else b"v%d") % i)
    first = Relay(rewind_seconds=60, silent_rebuild=True)
    any_bus.run(first, lambda: len(first.seen) >= 4)
    any_bus.send(SAMPLES, b"c/n", b"v4")
    second = Relay(rewind_seconds=60, silent_rebuild=True)
    status = any_bus.run(second, lambda: len(second.seen) >= 5)
    assert [r.offset for r in second.seen] == [0, 1, 2, 3, 4]
    assert status.rebuilt_total == 4
    assert values(any_bus.records(USAGE)) == [b"v0", b"v1", b"v3", b"v4"]
    assert len(any_bus.records(DLQ)) == 1


def test_a_rebuild_that_is_not_silent_repeats_outputs_but_no_dead_letter(any_bus: AnyBus) -> None:
    for value in (b"v0", b"bad1"):
        any_bus.send(SAMPLES, b"c/n", value)
    first, second = Relay(rewind_seconds=60), Relay(rewind_seconds=60)
    any_bus.run(first, lambda: len(first.seen) >= 2)
    any_bus.run(second, lambda: len(second.seen) >= 2)
    assert values(any_bus.records(USAGE)) == [b"v0", b"v0"]
    assert len(any_bus.records(DLQ)) == 1


def test_restore_reads_a_compacted_topic_to_its_end_tombstones_included(any_bus: AnyBus) -> None:
    any_bus.send(ALLOCATIONS, b"c/n", b"first")
    any_bus.send(ALLOCATIONS, b"c/n", None)
    any_bus.send(SAMPLES, b"c/n", b"v")
    restored: list[list[bytes | None]] = []
    partition = partition_of(b"c/n", 4)
    relay = Relay(restoring=lambda reader: restored.append([r.value for r in reader.read(ALLOCATIONS, partition)]))
    any_bus.run(relay, lambda: len(relay.seen) >= 1)
    assert restored[-1][-1] is None
    assert relay.owned[-1] == {(SAMPLES, p) for p in range(4)}


def test_ticks_come_when_nothing_is_left_to_read(any_bus: AnyBus) -> None:
    any_bus.send(SAMPLES, b"c/n", b"v")
    relay = Relay()
    any_bus.run(relay, lambda: bool(relay.ticks) and relay.ticks[-1] > 0 and len(relay.seen) == 1)
    assert relay.ticks == sorted(set(relay.ticks))


def test_reader_begins_at_a_time(any_bus: AnyBus) -> None:
    for value in (b"a", b"b"):
        any_bus.send(SAMPLES, b"c/n", value)
    partition = partition_of(b"c/n", 4)
    reader = any_bus.reader()
    _, second = list(reader.read(SAMPLES, partition))
    assert [r.value for r in reader.read(SAMPLES, partition, since_ns=second.timestamp_ns)][-1] == b"b"
    assert list(reader.read(SAMPLES, partition, since_ns=second.timestamp_ns + 10**9)) == []
