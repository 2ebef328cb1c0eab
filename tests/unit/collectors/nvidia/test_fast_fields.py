"""What a card answers each tick, in the catalogue's units: every unit, every return code, every blank value."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.nvidia.fast_fields import MIG_HIDES, Memory, fast_fields
from collectors.nvidia.readings import all_absent, reading
from collectors.nvidia.reply import Count32, Failed, Replies, Reply
from schemas.builder import SampleBuilder
from schemas.catalogue import BY_NUMBER, CATALOGUE, FAST, SLOW
from schemas.telemetry import v1
from schemas.values import REASON_OF_NUMBER, Absent

FAST_REPLIES: Replies = {
    "utilization_percent": 57,
    "memory_busy_percent": 31,
    "encoder_percent": 7,
    "decoder_percent": 8,
    "memory_used_bytes": 20_780_679_168,
    "power_instant_milliwatts": 588_390,
    "power_average_milliwatts": 629_450,
    "temperature_celsius": 59,
    "margin_celsius": -5,
    "memory_temperature_celsius": 55,
    "sm_clock_megahertz": 1980,
    "memory_clock_megahertz": 2619,
    "energy_millijoules": 918_273_645_123,
    "pcie_tx_bytes": 3_020_371_496_512,
    "pcie_rx_bytes": 6_893_142_392_832,
    "nvlink_tx_kibibytes": 1_048_576,
    "nvlink_rx_kibibytes": 2_097_152,
    "clock_reasons": 0x64,
    "policy_power_nanoseconds": 1_500_000_000,
    "policy_thermal_nanoseconds": 250_000_000,
    "fan_percent": 43,
    "performance_state": 2,
}
PROFILE: Replies = {
    "graphics_active_percent": 98.5,
    "sm_active_percent": 97.5,
    "sm_occupancy_percent": 62.5,
    "tensor_active_percent": 41.25,
    "dram_active_percent": 10.75,
    "fp64_active_percent": 0.5,
    "fp32_active_percent": 20.25,
    "fp16_active_percent": 38.5,
}


def fast(replies: Replies | None = None, *, mig: bool = False, profile: Replies | None = None, memory: Memory | None = None) -> Any:
    builder = SampleBuilder("nvidia:x")
    fast_fields(
        builder,
        FAST_REPLIES | (replies or {}),
        PROFILE if profile is None else profile,
        Memory() if memory is None else memory,
        mig=mig,
        seconds=1.0,
    )
    return builder.build()


def why(sample: v1.DeviceSample, field: str) -> str:
    """The reason of the field's absence; empty where it has a value."""
    for absence in sample.absences:
        if field in {BY_NUMBER[number].name for number in absence.field_number}:
            assert not sample.HasField(field)
            return REASON_OF_NUMBER[absence.reason]
    return ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("utilization_ratio", 0.57),
        ("memory_busy_ratio", 0.31),
        ("encoder_utilization_ratio", 0.07),
        ("decoder_utilization_ratio", 0.08),
        ("power_average_watts", 629.45),
        ("temperature_margin_celsius", -5),
        ("graphics_active_ratio", 0.985),
        ("sm_occupancy_ratio", 0.625),
        ("fp64_active_ratio", 0.005),
        ("fp32_active_ratio", 0.2025),
        ("fp16_active_ratio", 0.385),
        ("memory_used_bytes", 20_780_679_168),
        ("power_watts", 588.39),
        ("temperature_celsius", 59),
        ("memory_temperature_celsius", 55),
        ("sm_clock_hertz", 1.98e9),
        ("memory_clock_hertz", 2.619e9),
        ("energy_joules", 918_273_645.123),
        ("pcie_tx_bytes", 3_020_371_496_512),
        ("pcie_rx_bytes", 6_893_142_392_832),
        ("interconnect_tx_bytes", 2**30),
        ("interconnect_rx_bytes", 2**31),
        ("sm_active_ratio", 0.975),
        ("tensor_active_ratio", 0.4125),
        ("dram_active_ratio", 0.1075),
        ("throttle_reasons", 1 << 2 | 1 << 5 | 1 << 6),
        ("throttled_power_seconds", 1.5),
        ("throttled_thermal_seconds", 0.25),
        ("fan_ratio", 0.43),
        ("performance_state", 2),
    ],
)
def test_fast_units(field: str, value: float) -> None:
    assert getattr(fast(), field) == pytest.approx(value, rel=1e-6)


def test_every_fast_field_of_the_catalogue_is_said() -> None:
    assert {metric.name for metric in FAST if not fast().HasField(metric.name)} == set()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (2, "error"),
        (3, "not_supported"),
        (4, "no_permission"),
        (6, "not_supported"),
        (10, "error"),
        (13, "not_supported"),
        (15, "lost"),
        (16, "lost"),
        (25, "not_supported"),
        (26, "not_supported"),
        (28, "lost"),
        (999, "error"),
        (12345, "error"),
    ],
)
def test_every_return_code_has_a_reason(code: int, reason: str) -> None:
    assert why(fast({"fan_percent": Failed(code)}), "fan_ratio") == reason


@pytest.mark.parametrize(
    ("replies", "field", "reason"),
    [
        ({"utilization_percent": 4294967295}, "utilization_ratio", "out_of_range"),
        ({"utilization_percent": 101}, "utilization_ratio", "out_of_range"),
        ({"memory_used_bytes": 0xFFFFFFFFFFFFFFFF}, "memory_used_bytes", "error"),
        ({"memory_temperature_celsius": 0}, "memory_temperature_celsius", "not_supported"),
        ({"performance_state": 32}, "performance_state", "error"),
        ({"temperature_celsius": 3000}, "temperature_celsius", "out_of_range"),
        ({"power_instant_milliwatts": 4294967295}, "power_watts", "error"),
        ({"clock_reasons": Failed(4)}, "throttle_reasons", "no_permission"),
        ({"fan_percent": "N/A"}, "fan_ratio", "error"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_a_value_is_absent(replies: Replies, field: str, reason: str) -> None:
    assert why(fast(replies), field) == reason


def test_zero_is_a_value() -> None:
    sample = fast({"utilization_percent": 0, "clock_reasons": 0, "fan_percent": 0})
    assert [sample.HasField(name) for name in ("utilization_ratio", "throttle_reasons", "fan_ratio")] == [True] * 3


def test_unknown_throttle_bits_are_left_out() -> None:
    assert fast({"clock_reasons": 0x8001}).throttle_reasons == 1


def test_activity_a_little_above_one_is_one_and_far_above_is_refused() -> None:
    assert fast(profile={"sm_active_percent": 101.5}).sm_active_ratio == 1
    assert why(fast(profile={"sm_active_percent": 700.0}), "sm_active_ratio") == "out_of_range"
    assert why(fast(profile={"sm_active_percent": float("nan")}), "sm_active_ratio") == "out_of_range"


def test_activity_is_not_due_while_there_is_nothing_to_compare_with() -> None:
    sample = fast(profile={})
    assert not sample.HasField("sm_active_ratio")
    assert not why(sample, "sm_active_ratio")


def test_under_mig_the_cards_activity_is_absent_and_its_board_is_not() -> None:
    sample = fast(mig=True)
    assert {name: why(sample, name) for name in MIG_HIDES} == dict.fromkeys(MIG_HIDES, "not_supported")
    assert len(MIG_HIDES) == 12
    assert sample.power_watts == pytest.approx(588.39)


def test_an_older_source_stands_in_and_is_then_kept() -> None:
    memory = Memory()
    old: Replies = {"nvlink_tx_bytes": Failed(3)}
    assert fast(old, memory=memory).interconnect_tx_bytes == 2**30
    assert fast({"nvlink_tx_bytes": 77}, memory=memory).interconnect_tx_bytes == 2**30
    gone = fast({"nvlink_tx_bytes": 77, "nvlink_tx_kibibytes": Failed(999)}, memory=memory)
    assert why(gone, "interconnect_tx_bytes") == "error"


def test_the_reason_that_says_more_is_given_where_no_source_answers() -> None:
    replies: Replies = {"power_instant_milliwatts": Failed(3), "power_milliwatts": Failed(4)}
    assert why(fast(replies), "power_watts") == "no_permission"


def test_newer_links_count_in_bytes() -> None:
    assert fast({"nvlink_tx_bytes": 77}).interconnect_tx_bytes == 77


def test_a_32_bit_byte_counter_is_unwrapped_with_the_measured_rate() -> None:
    memory = Memory()
    rate: Replies = {"pcie_tx_mib_s": 8192.0, "pcie_rx_mib_s": 0.0}
    first: Replies = {"pcie_tx_bytes": Count32(100), "pcie_rx_bytes": Count32(5)}
    assert fast(first, profile={}, memory=memory).pcie_tx_bytes == 100
    sample = fast(first | {"pcie_tx_bytes": Count32(400)}, profile=rate, memory=memory)
    assert (sample.pcie_tx_bytes, sample.pcie_rx_bytes) == (400 + 2 * 2**32, 5)


def test_a_32_bit_byte_counter_without_a_rate_is_absent() -> None:
    sample = fast({"pcie_tx_bytes": Count32(100)}, profile={"sm_active_percent": Failed(3)})
    assert why(sample, "pcie_tx_bytes") == "not_supported"


def test_a_lost_card_has_every_field_absent() -> None:
    sample = all_absent("nvidia:x", 0, "lost").build()
    assert {why(sample, metric.name) for metric in CATALOGUE} == {"lost"}


def test_a_card_that_was_not_reached_keeps_its_slow_fields() -> None:
    sample = all_absent("nvidia:x", 0, "error", slow=False).build()
    assert {why(sample, metric.name) for metric in FAST} == {"error"}
    assert {why(sample, metric.name) for metric in SLOW} == {""}


@pytest.mark.parametrize(
    ("reply", "factor", "value"),
    [(None, 1, Absent("not_supported")), ("text", 1, Absent("error")), (0, 1e-3, 0), (1500, 1e-3, 1.5)],
    ids=["missing", "text", "zero", "scaled"],
)
def test_reading(reply: Reply | None, factor: float, value: object) -> None:
    assert reading(reply, factor) == value
