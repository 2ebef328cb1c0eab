"""Reading many samples from their bytes gives the points that reading them one by one gives."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.catalogue import CATALOGUE, SLOW, Metric
from schemas.telemetry import v1
from sinks.device import FEW, DevicePoints, Samples
from sinks.identities import Device, Identities
from sinks.points import Point
from tests.fakes.store_messages import batch, inventory

UID = "nvidia:a"
VALUES = {
    "float": st.sampled_from([0.0, 0.1, 1.5, -2.25, 3e38, math.inf, -math.inf, math.nan]),
    "double": st.sampled_from([0.0, 0.1, 1e300, math.inf, math.nan]),
    "uint32": st.sampled_from([0, 1, 127, 128, 2**32 - 1]),
    "uint64": st.sampled_from([0, 1, 300, 2**56 - 1, 2**56, 2**63 - 1, 2**63, 2**64 - 1]),
    "bool": st.booleans(),
}


@st.composite
def devices(draw: st.DrawFn) -> v1.DeviceSample:
    sample = v1.DeviceSample(uid=draw(st.sampled_from([UID, "nvidia:ü"])), index=draw(st.integers(0, 9)))
    for metric in draw(st.lists(st.sampled_from(CATALOGUE), max_size=12)):
        setattr(sample, metric.name, draw(VALUES[metric.wire]))
    if draw(st.integers(0, 9)) == 0:
        sample.full = True
        sample.info.model = "another"
    if draw(st.integers(0, 9)) == 0:
        sample.absences.add(reason=v1.AbsenceReason.ABSENCE_REASON_ERROR, field_number=[CATALOGUE[0].number, 4000])
    if draw(st.integers(0, 9)) == 0:
        sample.vendor_metrics["x"] = 1.0
    return sample


def points(batches: list[v1.SampleBatch], *, at_once: bool) -> list[Point]:
    identities = Identities()
    for uid in (UID, "nvidia:ü"):
        record = inventory(uid)
        identities.learn(Device(record.device.cluster, record.device.node, uid), record.device)
    samples = Samples([(one, one.SerializeToString()) for one in batches])
    if at_once:
        assert samples.thin is not None
    else:
        samples.thin = None
    made = DevicePoints(identities)
    made.learn(samples)
    assert not made.unknown(samples)
    found, batch_of = made.points(samples)
    assert [p.time_ns for p in found] == [batches[position].taken_at_ns for position in batch_of]
    assert [found[i] for i in range(len(found))] == list(found)
    return sorted(found, key=repr)


def shown(points: list[Point]) -> list[tuple[object, ...]]:
    """What is compared: field order and types as well."""
    found = [(p.tags, p.time_ns, [(name, value, type(value)) for name, value in p.fields.items()]) for p in points]
    return sorted(found, key=repr)


def assert_same(batches: list[v1.SampleBatch]) -> None:
    assert shown(points(batches, at_once=True)) == shown(points(batches, at_once=False))


@settings(max_examples=40, deadline=None)
@given(st.lists(devices(), min_size=1, max_size=6))
def test_the_same_points(few: list[v1.DeviceSample]) -> None:
    many = few * (FEW // len(few) + 1)
    assert_same([batch(10, *few, sequence=2**64 - 1), batch(11), batch(12, *many, sequence=3)])


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda m: m.name)
def test_every_metric_alone(metric: Metric) -> None:
    sample = v1.DeviceSample(uid=UID)
    setattr(sample, metric.name, True if metric.wire == "bool" else 77)
    made = points([batch(10, *[sample] * FEW)], at_once=True)
    assert_same([batch(10, *[sample] * FEW)])
    assert (metric.name in made[0].fields) == (metric not in SLOW)


def test_few_samples_and_bytes_of_another_form_are_read_one_by_one() -> None:
    few = batch(10, *[v1.DeviceSample(uid=UID)] * (FEW - 1))
    assert Samples([(few, few.SerializeToString())]).thin is None
    group = b"\xfb\x05\xfc\x05"  # field 95 as a group, which proto3 does not have
    many = batch(10, *[v1.DeviceSample(uid=UID)] * FEW)
    assert Samples([(many, many.SerializeToString() + group)]).thin is None
