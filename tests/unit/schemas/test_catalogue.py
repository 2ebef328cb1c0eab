"""The catalogue is whole: every field of DeviceSample that is a metric says everything the outside needs."""

import re

import pytest

from schemas.catalogue import BY_NAME, CATALOGUE, metric, state_name, throttle_names
from schemas.telemetry import v1

UNIT_OF_SUFFIX = {
    "_watts": "W",
    "_joules": "J",
    "_celsius": "Cel",
    "_bytes": "By",
    "_hertz": "Hz",
    "_seconds": "s",
    "_ratio": "1",
}
NOT_METRICS = {"uid", "index", "full", "absences", "info", "vendor_metrics", "links"}


def test_every_field_is_a_metric_or_named_here() -> None:
    assert {f.name for f in v1.DeviceSample.DESCRIPTOR.fields} - set(BY_NAME) == NOT_METRICS


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda m: m.name)
def test_row_is_complete(row) -> None:  # type: ignore[no-untyped-def]  # pytest's parameter
    assert row.kind in ("gauge", "counter", "set")
    assert row.cadence in ("fast", "slow")
    assert row.max_age_ns > 0
    assert row.unit
    assert row.meaning.endswith(".")
    assert re.fullmatch(r"(hw|xpulse)\.[a-z0-9_.]+", row.otel_name)
    assert re.fullmatch(r"xpulse_device_[a-z0-9_]+", row.prometheus_name)
    for suffix, unit in UNIT_OF_SUFFIX.items():
        if row.name.endswith(suffix):
            assert row.unit == unit
    if row.kind == "counter":
        assert row.minimum == 0
        assert row.wire in ("uint32", "uint64", "double")
    assert bool(row.bits) == (row.kind == "set")
    for enum in filter(None, (row.bits, row.states)):
        assert enum in v1.__all__
    assert all(key and value for key, value in row.otel_attributes)


def test_outside_names_are_unique() -> None:
    assert len({m.prometheus_name for m in CATALOGUE}) == len(CATALOGUE)
    assert len({(m.otel_name, m.otel_attributes) for m in CATALOGUE}) == len(CATALOGUE)


def test_the_hottest_fields_take_one_byte_of_tag() -> None:
    assert {m.name for m in CATALOGUE if m.number <= 15} >= {"utilization_ratio", "memory_used_bytes", "power_watts", "temperature_celsius"}


def test_unknown_name_tells_the_nearest() -> None:
    with pytest.raises(KeyError, match="power_watts"):
        metric("power_wats")


def test_throttle_names_keep_unknown_bits() -> None:
    assert throttle_names(0b1000100) == ["software_power_cap", "hardware_thermal"]
    assert throttle_names(1 << 30) == ["bit_30"]
    assert throttle_names(0) == []


def test_states_are_named_in_words() -> None:
    assert state_name(metric("recovery_action"), 4.0) == "drain and reset"
    assert state_name(metric("recovery_action"), 0) == "none"
    assert state_name(metric("compute_mode"), 3) == "exclusive process"
    assert state_name(metric("fabric_state"), 12) == "state 12"
