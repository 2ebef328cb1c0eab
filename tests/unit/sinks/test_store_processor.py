"""The store role: identities, dead letters, waiting, and that reading a topic again writes the same points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from schemas import topics
from schemas.flow import Busy, DeadLetter, Record
from schemas.telemetry import v1
from sinks.points import Point, RejectedPoint
from sinks.store import StoreProcessor
from sinks.usage import stored
from tests.fakes.log_reader import LogReader
from tests.fakes.store_messages import SECOND_NS, batch, inventory, record, sample, samples

OPENED = v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_OPENED
T0 = 1_800_000_000_000_000_000


class MemoryWriter:
    """A PointWriter that keeps points by series and time; `busy` and `refuse` (by field) make it fail."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, tuple[str, ...], int], dict[str, object]] = {}
        self.dropped: Counter[str] = Counter()
        self.busy = False
        self.refuse = ""

    def write(self, points: Sequence[Point]) -> list[RejectedPoint]:
        if self.busy:
            raise Busy(1.0, "away")
        for point in points:
            if self.refuse not in point.fields:
                self.stored.setdefault((point.measurement, point.tags, point.time_ns), {}).update(point.fields)
        return [RejectedPoint(i, f"no {self.refuse}") for i, p in enumerate(points) if self.refuse in p.fields]

    def close(self) -> None:
        """Nothing to close."""


def role(writer: MemoryWriter, *known: v1.InventoryRecord, tries: int = 2) -> tuple[StoreProcessor, LogReader]:
    """A restored processor and the reader whose inventory it will look at again."""
    reader = LogReader({(topics.INVENTORY, 0): [record(topics.INVENTORY, one) for one in known]})
    processor = StoreProcessor("sqlite", writer, identity_tries=tries)
    processor.restore(reader, frozenset())
    return processor, reader


def kinds(writer: MemoryWriter) -> set[tuple[str, str, str]]:
    """uid, kind and model of the stored device points."""
    return {(tags[3], tags[4], tags[5]) for name, tags, _ in writer.stored if name == "device"}


KNOWN = ("nvidia:a", "accelerator", "NVIDIA H200")


def test_a_thin_sample_has_the_tags_of_the_inventory() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer, inventory("nvidia:a"))
    processor.process(samples(batch(T0, sample("nvidia:a", power_watts=1))))
    assert kinds(writer) == {KNOWN}


def test_a_new_model_name_is_used_from_its_full_sample_on() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer, inventory("nvidia:a", model="old"))
    processor.process(samples(batch(T0, sample("nvidia:a", power_watts=1))))
    processor.process(samples(batch(T0 + 1, sample("nvidia:a", full=True, power_watts=1))))
    processor.process(samples(batch(T0 + 2, sample("nvidia:a", power_watts=1))))
    assert [tags[5] for _, tags, _ in writer.stored] == ["old", "NVIDIA H200", "NVIDIA H200"]


def test_a_thin_sample_before_the_full_one_of_its_batch_has_its_tags() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer)
    processor.process(samples(batch(T0, sample("nvidia:a", power_watts=1)), batch(T0 + 1, sample("nvidia:a", full=True, power_watts=1))))
    assert kinds(writer) == {KNOWN}


def test_a_device_that_nobody_knows_is_waited_for_then_read_from_inventory() -> None:
    writer = MemoryWriter()
    processor, reader = role(writer)
    records = samples(batch(T0, sample("nvidia:a", power_watts=1)))
    with pytest.raises(Busy, match="nvidia:a"):
        processor.process(records)
    assert writer.stored == {}
    reader.logs = {(topics.INVENTORY, 0): [record(topics.INVENTORY, inventory("nvidia:a"))]}
    assert processor.process(records) == []
    assert kinds(writer) == {KNOWN}
    assert processor.dropped == {}


def test_a_device_that_stays_unknown_is_stored_as_unknown_and_holds_nothing_up() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer, inventory("nvidia:a"), tries=2)
    records = samples(batch(T0, sample("nvidia:a", power_watts=1), sample("nvidia:x", power_watts=1)))
    for _ in range(2):
        with pytest.raises(Busy):
            processor.process(records)
    assert processor.process(records) == []
    assert kinds(writer) == {KNOWN, ("nvidia:x", "unknown", "unknown")}
    assert processor.dropped == {"identity_unknown": 1}
    assert processor.process(samples(batch(T0 + 1, sample("nvidia:x", power_watts=1)))) == []


def test_one_cluster_s_device_is_not_another_s() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer, inventory("nvidia:a", cluster="c2", model="B200"), inventory("nvidia:a"))
    processor.process(samples(*(batch(T0, sample("nvidia:a", power_watts=1), cluster=c) for c in ("c1", "c2"))))
    assert {(tags[0], tags[5]) for _, tags, _ in writer.stored} == {("c1", "NVIDIA H200"), ("c2", "B200")}


def test_in_one_batch_or_in_many_and_after_a_restart_the_points_are_the_same() -> None:
    batches = [batch(T0 + s * SECOND_NS, sample("nvidia:a", full=s % 4 == 0, power_watts=s), sequence=s) for s in range(9)]
    head = v1.AttributedBatch(cluster="c1", node="n1", source="s", interval_ns=SECOND_NS, rows=[v1.Attributed(uid="u")])
    usage = []
    for one in batches:
        head.taken_at_ns, head.sequence = one.taken_at_ns, one.sequence
        usage.append(v1.AttributedBatch.FromString(head.SerializeToString()))
    records = samples(*batches) + [record(topics.USAGE, u, i) for i, u in enumerate(usage)]
    at_once, one_by_one, replayed = MemoryWriter(), MemoryWriter(), MemoryWriter()

    role(at_once, inventory("nvidia:a"))[0].process(records)
    processor, _ = role(one_by_one, inventory("nvidia:a"))
    for each in records:
        processor.process([each])
    role(replayed, inventory("nvidia:a"))[0].process(records[:7])
    role(replayed, inventory("nvidia:a"))[0].process(records[3:])

    assert at_once.stored == one_by_one.stored == replayed.stored
    assert len(at_once.stored) == 10


def test_two_pods_of_one_workload_that_say_more_than_a_store_holds_stop_nothing() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer)
    row = v1.Attributed(uid="u", memory_used_bytes=2**63 - 1, workload=v1.Workload(namespace="n", workload="w"))
    usage = v1.AttributedBatch(cluster="c1", node="n1", source="s", taken_at_ns=T0, rows=[row, row])
    assert processor.process([record(topics.USAGE, usage)]) == []
    assert [fields["memory_used_bytes"] for fields in writer.stored.values()] == [2**63 - 1]


def test_slow_fields_and_absences_are_stored_with_full_samples_only() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer)
    full = sample("nvidia:a", full=True, power_watts=1, memory_total_bytes=9, absent={"fan_ratio": "not_supported"})
    processor.process(samples(batch(T0, full), batch(T0 + 1, sample("nvidia:a", power_watts=0))))

    first, second = writer.stored.values()

    assert first["absent"] == "fan_ratio=not_supported"
    assert (first["memory_total_bytes"], first["serial"], first["driver_version"], first["index"]) == (9, "165", "580.1", 3)
    assert second == {"seq": 1, "epoch": 77, "power_watts": 0.0}


@pytest.mark.parametrize(
    ("sequence", "interval_s", "is_stored"),
    [(10, 1, True), (11, 1, False), (19, 1, False), (0, 1, True), (4, 5, True), (5, 5, False), (33, 30, True), (7, 0, True)],
)
def test_usage_is_stored_one_batch_in_ten_seconds_by_count(sequence: int, interval_s: int, is_stored: bool) -> None:
    assert stored(sequence, interval_s * SECOND_NS) is is_stored


def test_malformed_records_are_dead_letters_and_the_others_are_stored() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer, inventory("nvidia:a"))
    good = record(topics.SAMPLES, batch(T0, sample("nvidia:a", power_watts=1)))
    bad = [
        good._replace(value=b""),
        good._replace(value=b"\xff\xff"),
        good._replace(headers=()),
        good._replace(value=None),
        record(topics.SAMPLES, batch(2**63, sample("nvidia:a", power_watts=1))),
        record(
            topics.ALLOCATION_CHANGES,
            v1.AllocationChange(cluster="c", node="n", kind=v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_OPENED, at_ns=1),
        ),
    ]
    letters = processor.process([*bad, good])
    assert [letter.record for letter in letters if isinstance(letter, DeadLetter)] == bad
    assert len(writer.stored) == 1


def test_a_refused_point_makes_one_dead_letter_of_its_record() -> None:
    writer = MemoryWriter()
    writer.refuse = "fan_ratio"
    processor, _ = role(writer, inventory("nvidia:a"), inventory("nvidia:b"))
    records = samples(
        batch(T0, sample("nvidia:a", fan_ratio=1), sample("nvidia:b", fan_ratio=1)), batch(T0 + 1, sample("nvidia:a", power_watts=1))
    )
    (letter,) = processor.process(records)
    assert isinstance(letter, DeadLetter)
    assert letter.record is records[0]
    assert letter.reason == "no fan_ratio"
    assert len(writer.stored) == 1


def test_a_busy_store_takes_nothing_and_the_same_records_again_later() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer, inventory("nvidia:a"))
    records: list[Record] = samples(batch(T0, sample("nvidia:a", power_watts=1)))
    writer.busy = True
    with pytest.raises(Busy):
        processor.process(records)
    writer.busy = False
    assert processor.process(records) == []
    assert len(writer.stored) == 1


def test_values_that_no_store_can_hold_are_left_out() -> None:
    writer = MemoryWriter()
    processor, _ = role(writer, inventory("nvidia:a"))
    raw = v1.DeviceSample(uid="nvidia:a", power_watts=float("nan"), pcie_tx_bytes=2**64 - 1, utilization_ratio=0.5)
    processor.process(samples(batch(T0, raw)))
    (fields,) = writer.stored.values()
    assert fields == {"seq": 1, "epoch": 77, "pcie_tx_bytes": 2**63 - 1, "utilization_ratio": 0.5}
