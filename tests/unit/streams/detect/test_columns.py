"""Both ways of reading samples give the same columns: message by message, and all bytes side by side."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.catalogue import CATALOGUE, Metric
from schemas.telemetry import v1
from schemas.wire import Buffer, Unusual
from streams.operators.detect.columns import FEW, Columns, Reader, Taken, rounds
from streams.operators.detect.fleet import Fleet
from streams.operators.detect.table import Table

METRICS = [m.name for m in CATALOGUE]
VALUES = {
    "float": st.floats(width=32),
    "double": st.floats(),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.one_of(st.integers(0, 300), st.integers(0, 2**56 - 1)),
    "bool": st.booleans(),
}


@st.composite
def samples(draw: st.DrawFn) -> v1.DeviceSample:
    made = v1.DeviceSample(uid=draw(st.sampled_from(["v:1", "v:2", "v:ü3", ""])), index=draw(st.integers(0, 300)), full=draw(st.booleans()))
    for metric in draw(st.lists(st.sampled_from(CATALOGUE), max_size=12)):
        setattr(made, metric.name, draw(VALUES[metric.wire]))
    if draw(st.integers(0, 3)) == 0:
        made.absences.add(reason=v1.AbsenceReason.ABSENCE_REASON_ERROR, field_number=draw(st.lists(st.integers(1, 100), max_size=5)))
        made.info.model = draw(st.sampled_from(["", "H200"]))
        made.vendor_metrics["x"] = 1.5
    return made


def read(batches: list[v1.SampleBatch], tail: bytes | None) -> tuple[Columns, Fleet]:
    """Columns of the batches; with `tail` from bytes, to which it is appended."""
    table = Table()
    table.define("any", np.float64, 0.0)
    fleet = Fleet(table)
    taken = [Taken(b, None if tail is None else b.SerializeToString() + tail) for b in batches]
    return Reader(METRICS).read(taken, fleet), fleet


def assert_same(batches: list[v1.SampleBatch], tail: bytes = b"") -> None:
    (slow, one), (fast, two) = read(batches, None), read(batches, tail)
    np.testing.assert_array_equal(slow.values, fast.values)
    np.testing.assert_array_equal(slow.rows, fast.rows)
    np.testing.assert_array_equal(slow.at_ns, fast.at_ns)
    np.testing.assert_array_equal(slow.epoch, fast.epoch)
    assert (slow.absent is None) == (fast.absent is None)
    if slow.absent is not None and fast.absent is not None:
        np.testing.assert_array_equal(slow.absent, fast.absent)
    assert [(d.uid, d.index, d.model, d.row) for d in one.devices()] == [(d.uid, d.index, d.model, d.row) for d in two.devices()]


def many(few: list[v1.DeviceSample]) -> list[v1.SampleBatch]:
    """Enough devices to be read from their bytes, in three nodes of which one says nothing."""
    lists: list[list[v1.DeviceSample]] = [few, [], few * (FEW // max(len(few), 1) + 1)]
    return [
        v1.SampleBatch(
            cluster="c", node=f"n{i}", source="s", agent_epoch=1, sequence=i, taken_at_ns=10 + i, boot_id="b" * i, devices=devices
        )
        for i, devices in enumerate(lists)
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(samples(), min_size=1, max_size=5))
def test_bytes_and_messages_say_the_same(few: list[v1.DeviceSample]) -> None:
    assert_same(many(few))


def test_fields_of_a_newer_release_are_passed_over() -> None:
    newer = b"".join((b"\xf8\x05\x07", b"\x82\x06\x03abc", b"\x8d\x06abcd", b"\x91\x06abcdefgh"))  # fields 95 to 98, one of each wire type
    sample = v1.DeviceSample.FromString(v1.DeviceSample(uid="v:1", power_watts=5).SerializeToString() + newer)
    batches = many([sample])
    assert_same(batches, tail=newer)
    assert read(batches, newer)[0].values[0, METRICS.index("power_watts")] == 5


@pytest.mark.parametrize("tail", [b"\x82\x80\x01\x03abc", b"\xfb\x05\xfc\x05"], ids=["large_number", "group"])
def test_what_the_fast_reader_does_not_know_is_left_to_protobuf(tail: bytes) -> None:
    batches = many([v1.DeviceSample(uid="v:1", power_watts=5)])
    assert v1.SampleBatch.FromString(batches[0].SerializeToString() + tail).node == "n0"
    assert_same(batches, tail=tail)
    raw = v1.DeviceSample(uid="v:1").SerializeToString() + tail
    with pytest.raises(Unusual):
        list(Buffer([raw]).walk(np.array([0]), np.array([len(raw)]), ()))


def test_numbers_of_2_to_the_56_and_more_are_left_to_protobuf() -> None:
    assert_same(many([v1.DeviceSample(uid="v:1", memory_used_bytes=2**64 - 1)]))


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda m: m.name)
def test_every_metric_is_read(metric: Metric) -> None:
    sample = v1.DeviceSample(uid="v:1")
    setattr(sample, metric.name, True if metric.wire == "bool" else 77)
    column = METRICS.index(metric.name)
    for tail in (None, b""):
        values = read(many([sample]), tail)[0].values
        assert (values[:, column] == (1 if metric.wire == "bool" else 77)).all()
        assert np.isnan(np.delete(values, column, axis=1)).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=200))
def test_rounds_keep_each_rows_order_and_never_hold_a_row_twice(rows: list[int]) -> None:
    split = [where.tolist() for where in rounds(np.array(rows, np.intp))]
    assert sorted(i for where in split for i in where) == list(range(len(rows)))
    assert all(len({rows[i] for i in where}) == len(where) for where in split)
    of_row = [[i for where in split for i in where if rows[i] == row] for row in set(rows)]
    assert of_row == [sorted(places) for places in of_row]


def test_many_devices_are_read_from_their_bytes_and_few_are_not() -> None:
    table = Table()
    table.define("any", np.float64, 0.0)
    fleet, reader = Fleet(table), Reader(METRICS)
    taken = [Taken(b, b.SerializeToString()) for b in many([v1.DeviceSample(uid="v:1", power_watts=5)])]
    assert reader._from_bytes(taken, fleet) is not None
    assert reader._from_bytes(taken[:1], fleet) is None
    assert reader._from_bytes([Taken(t.batch) for t in taken], fleet) is None
