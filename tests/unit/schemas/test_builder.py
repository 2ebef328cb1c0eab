"""A sample holds values and absences with reasons; nothing impossible gets through as a number."""

import math

import pytest

from schemas.builder import SampleBuilder
from schemas.catalogue import BY_NAME
from schemas.telemetry import v1
from schemas.values import Absent


def absences(sample: v1.DeviceSample) -> dict[str, str]:
    names = {m.number: m.name for m in BY_NAME.values()}
    return {names[n]: v1.AbsenceReason.Name(a.reason) for a in sample.absences for n in a.field_number}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("utilization_ratio", 1.5),
        ("utilization_ratio", math.nan),
        ("power_watts", math.inf),
        ("power_watts", -1.0),
        ("memory_used_bytes", 2**64),
        ("memory_used_bytes", -5),
        ("remapped_rows_correctable", 2**32),
        ("temperature_celsius", 255.0),
    ],
)
def test_impossible_value_is_absent_out_of_range(field: str, value: float) -> None:
    builder = SampleBuilder("nvidia:GPU-1").set(field, value)
    sample = builder.build()
    assert not sample.HasField(field)
    assert absences(sample) == {field: "ABSENCE_REASON_OUT_OF_RANGE"}
    assert builder.rejects == {(field, "out_of_range"): 1}


def test_zero_is_a_value() -> None:
    sample = (
        SampleBuilder("nvidia:GPU-1").set("utilization_ratio", 0).set("throttle_reasons", 0).set("remapped_rows_pending", False).build()
    )
    assert sample.HasField("utilization_ratio")
    assert sample.HasField("throttle_reasons")
    assert sample.HasField("remapped_rows_pending")
    assert not sample.absences


def test_absences_are_grouped_by_reason_and_cost_nothing_when_there_are_none() -> None:
    sample = (
        SampleBuilder("a:1").absent("fan_ratio", "not_supported").set("power_watts", Absent("lost")).absent("energy_joules", "lost").build()
    )
    assert len(sample.absences) == 2
    assert absences(sample) == {
        "fan_ratio": "ABSENCE_REASON_NOT_SUPPORTED",
        "power_watts": "ABSENCE_REASON_LOST",
        "energy_joules": "ABSENCE_REASON_LOST",
    }
    assert len(SampleBuilder("a:1").build().SerializeToString()) == len("a:1") + 2


def test_the_last_word_counts() -> None:
    sample = SampleBuilder("a:1").absent("power_watts", "error").set("power_watts", 3.0).build()
    assert sample.power_watts == 3.0
    assert not sample.absences


def test_none_is_an_error_not_a_zero() -> None:
    assert absences(SampleBuilder("a:1").set("power_watts", None).build()) == {"power_watts": "ABSENCE_REASON_ERROR"}


def test_a_sample_needs_a_uid_and_a_known_field() -> None:
    with pytest.raises(ValueError, match="uid"):
        SampleBuilder("")
    with pytest.raises(KeyError):
        SampleBuilder("a:1").set("power", 3)


def test_scale_sets_what_is_a_number_in_its_range_and_gives_back_the_rest() -> None:
    builder = SampleBuilder("fake:x").absent("power_watts", "stale")
    plan = [
        ("power_watts", "milliwatts", 1e-3),
        ("temperature_celsius", "celsius", 1),
        ("utilization_ratio", "percent", 1e-2),
        ("memory_used_bytes", "bytes", 1),
        ("fan_ratio", "fan", 1e-2),
        ("sm_active_ratio", "sm", 1e-2),
        ("remapped_rows_pending", "pending", 1),
    ]
    numbers = {"milliwatts": 1500, "percent": 101, "bytes": 0xFFFFFFFF, "fan": "ERR!", "sm": float("nan"), "pending": 1}
    left = builder.scale(plan, numbers, {0xFFFFFFFF})
    assert [field for field, _, _ in left] == [
        "temperature_celsius",
        "utilization_ratio",
        "memory_used_bytes",
        "fan_ratio",
        "sm_active_ratio",
    ]
    sample = builder.build()
    assert (sample.power_watts, sample.remapped_rows_pending) == (1.5, True)
    assert not sample.absences
