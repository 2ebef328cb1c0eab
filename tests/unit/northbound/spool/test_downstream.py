"""What an outage's batches do to those who read them late: clocks stay right, silence ends, owners are found, repeats add nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from schemas import topics
from schemas.flow import Emitted, Out, Record, Tick
from schemas.telemetry import v1
from streams.processors.attribute import AttributeProcessor
from streams.processors.detect import DetectProcessor
from streams.settings import Attribute, Detect
from tests.unit.streams.attribute import build
from tests.unit.streams.detect.given import ALL, GIB, MemoryReader, at, batch, record
from xpulse.northbound.spool.stamp import sent_again

if TYPE_CHECKING:
    from collections.abc import Sequence

BEFORE, OUTAGE = 100, 600
BACK = BEFORE + OUTAGE
LIMIT_AT = 350
"""The second of the outage in which memory got nearly full."""
CHANGE = 295


def detect() -> DetectProcessor:
    made = DetectProcessor.of(Detect(), rebuild_seconds=120)
    made.restore(MemoryReader(), ALL)
    return made


def live(second: int, arrived: float | None = None) -> Record:
    """What was read and sent in that second."""
    used = 78 if second >= LIMIT_AT else 60
    made = batch(second, v1.DeviceSample(uid="v:1", memory_used_bytes=used * GIB, memory_total_bytes=80 * GIB), sequence=second)
    made.sent_at_ns = made.taken_at_ns + 1_000_000
    return record(topics.SAMPLES, made, second if arrived is None else arrived)


def late(second: int, arrived: float) -> Record:
    """The same out of the spool."""
    it = live(second, arrived)
    out = sent_again(Out(it.topic, it.key or b"", it.value, it.headers), at(arrived))
    return it._replace(value=out.value)


def unmarked(second: int, arrived: float) -> Record:
    """As a consumer of the release before reads it: it does not know the mark."""
    it = late(second, arrived)
    message = v1.SampleBatch.FromString(it.value or b"")
    message.replayed = False
    return it._replace(value=message.SerializeToString())


def arrivals(kind: str) -> list[Record]:
    """All that reaches the bus after the outage, within two seconds: first the few that asked whether it is back, long on their way."""
    make = unmarked if kind == "unmarked" else late
    first = [make(second, BEFORE + 15)._replace(timestamp_ns=at(BACK)) for second in range(BEFORE, BEFORE + 8)]
    return first + [make(second, BACK + 0.003 * (second - BEFORE)) for second in range(BEFORE + 8, BACK)]


def findings(emitted: Sequence[Emitted]) -> list[v1.Finding]:
    return [v1.Finding.FromString(out.value or b"") for out in emitted if isinstance(out, Out)]


@pytest.mark.parametrize("kind", ["marked", "unmarked"])
def test_ten_minutes_on_disk_are_no_wrong_clock(kind: str) -> None:
    given = detect()
    given.process([live(second) for second in range(BEFORE)])
    found = findings([out for it in arrivals(kind) for out in given.process([it])])
    assert given.counters["clocks_wrong"] == 0
    assert [(f.rule, f.observed_at_ns) for f in found][:1] == [("memory_nearly_full", at(LIMIT_AT))]
    given.process([live(second) for second in range(BACK, BACK + 100)])
    assert given.counters["clocks_wrong"] == 0


def test_a_node_first_heard_by_what_was_spooled_has_a_right_clock() -> None:
    given = detect()
    given.process(arrivals("marked"))
    assert given.counters["clocks_wrong"] == 0


def test_a_clock_that_is_wrong_is_still_found_and_corrects_what_comes_late() -> None:
    """An hour ahead, known from before the outage: the time that the finding has is the broker's."""

    def ahead(it: Record) -> Record:
        message = v1.SampleBatch.FromString(it.value or b"")
        message.taken_at_ns += 3600 * 10**9
        if not message.replayed:
            message.sent_at_ns += 3600 * 10**9
        return it._replace(value=message.SerializeToString())

    given = detect()
    given.process([ahead(live(second)) for second in range(BEFORE)])
    found = findings([out for it in arrivals("marked") for out in given.process([ahead(it)])])
    assert given.counters["clocks_wrong"] == 1
    assert [(f.rule, f.observed_at_ns) for f in found][:1] == [("memory_nearly_full", at(LIMIT_AT))]


def test_a_node_that_was_cut_off_is_silent_until_its_spool_arrives() -> None:
    given = detect()
    given.process([live(second) for second in range(BEFORE)])
    assert [(f.rule, f.active) for f in findings(given.tick(Tick(at(BACK - 1))))] == [("node_silent", True)]
    found = findings(given.process([late(BEFORE, BACK)]))
    assert [(f.rule, f.active) for f in found] == [("node_silent", False)]
    given.process(arrivals("marked")[1:])
    assert findings(given.tick(Tick(at(BACK + 5)))) == []


def test_batches_that_arrive_twice_find_nothing_twice() -> None:
    given = detect()
    once = findings(given.process(arrivals("marked")))
    assert once
    assert findings(given.process(arrivals("marked"))) == []


def attributed(emitted: Sequence[Emitted]) -> list[tuple[int, str, float | None]]:
    """(second, pod, joules) of each row."""
    found = []
    for out in emitted:
        assert isinstance(out, Out)
        message = v1.AttributedBatch.FromString(out.value or b"")
        second = (message.taken_at_ns - build.T0) // build.S
        found += [(second, row.workload.pod, row.energy_joules if row.HasField("energy_joules") else None) for row in message.rows]
    return found


def allocations(second: int) -> v1.AllocationSnapshot:
    """Pod a holds the device until CHANGE, then pod b."""
    if second < CHANGE:
        return build.snapshot(second, build.allocation("a", 0))
    ended = [build.allocation("a", 0, CHANGE)] if second < CHANGE + 900 else []
    return build.snapshot(second, *ended, build.allocation("b", CHANGE))


@pytest.mark.parametrize("order", ["samples-first", "allocations-first", "abreast"])
def test_who_held_what_in_the_outage_is_found_whatever_comes_first(order: str) -> None:
    samples = [build.record(build.batch(s, sequence=s), s, arrived=OUTAGE + s / 300) for s in range(OUTAGE)]
    told = [build.record(allocations(s), s, arrived=OUTAGE + s / 300) for s in range(0, OUTAGE + 10, 10)]
    arriving = {"samples-first": samples + told, "allocations-first": told + samples}.get(order)
    if arriving is None:
        arriving = sorted([*samples, *told], key=lambda it: (it.offset // 30, it.topic))
    given = AttributeProcessor.of(Attribute(), rebuild_seconds=120)
    rows = attributed(given.process(arriving))
    assert [(second, pod) for second, pod, _ in rows] == [(s, "a" if s < CHANGE else "b") for s in range(OUTAGE)]
    assert +given.dropped == {}


def test_a_longer_outage_than_allocations_remember_is_joined_when_both_topics_come_abreast() -> None:
    """Snapshots name what ended in the last 15 minutes: here a pod ended an hour before the last one."""
    hour = 3600
    told = [build.record(allocations(s), s) for s in range(0, hour + 10, 10)]
    samples = [build.record(build.batch(s, sequence=s), s, arrived=2 * hour) for s in range(0, hour, 10)]
    arriving = sorted([*samples, *told], key=lambda it: (it.offset // 30, it.topic))
    rows = attributed(AttributeProcessor.of(Attribute(), rebuild_seconds=120).process(arriving))
    assert {pod for second, pod, _ in rows if second < CHANGE} == {"a"}
    ahead = attributed(AttributeProcessor.of(Attribute(), rebuild_seconds=120).process(told + samples))
    assert {pod for second, pod, _ in ahead if second < CHANGE} == {""}  # what nobody remembers is unknown, not idle


def test_energy_of_a_batch_that_arrives_twice_is_counted_once() -> None:
    told = build.record(allocations(0))
    batches = [build.record(build.batch(s, sequence=s, energy=100.0 * s), s, arrived=700) for s in range(5)]
    watermark = build.record(allocations(10))
    given = AttributeProcessor.of(Attribute(), rebuild_seconds=120)
    rows = attributed(given.process([told, watermark, *batches, *batches[2:]]))
    assert sum(joules or 0.0 for _, _, joules in rows) == 400.0
