"""What a card answers once a minute, in the catalogue's units."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.nvidia.links import link_fields
from collectors.nvidia.reply import Failed, Replies
from collectors.nvidia.slow_fields import Limits, fabric_state, fabric_unhealthy, recovery_action, slow_fields
from schemas.builder import SampleBuilder
from schemas.catalogue import SLOW
from schemas.values import Absent
from tests.unit.collectors.nvidia.test_fast_fields import why

SLOW_REPLIES: Replies = {
    "temperature_celsius": 59,
    "memory_total_bytes": 85_520_809_984,
    "memory_reserved_bytes": 502_267_904,
    "power_limit_milliwatts": 650_500,
    "power_limit_min_milliwatts": 200_000,
    "power_default_milliwatts": 700_000,
    "sm_clock_max_megahertz": 1980,
    "memory_clock_max_megahertz": 2619,
    "graphics_clock_megahertz": 1755,
    "graphics_clock_max_megahertz": 1981,
    "video_clock_megahertz": 1545,
    "video_clock_max_megahertz": 1546,
    "policy_sync_boost_nanoseconds": 1_500_000_000,
    "violation_board_limit_nanoseconds": 2_500_000_000,
    "policy_low_utilization_nanoseconds": 3_500_000_000,
    "policy_reliability_nanoseconds": 4_500_000_000,
    "hardware_thermal_nanoseconds": 5_500_000_000,
    "power_brake_nanoseconds": 6_500_000_000,
    "pcie_generation": 4,
    "pcie_generation_max": 5,
    "pcie_width": 8,
    "pcie_width_max": 16,
    "pcie_replays": 9,
    "pcie_tx_kilobytes_per_second": 352,
    "pcie_rx_kilobytes_per_second": 329,
    "ecc_mode": 1,
    "ecc_corrected_volatile": 1,
    "ecc_uncorrected_volatile": 2,
    "ecc_corrected_aggregate": 3,
    "ecc_uncorrected_aggregate": 4,
    "ecc_corrected_dram_volatile": 11,
    "ecc_uncorrected_dram_volatile": 12,
    "ecc_corrected_dram_aggregate": 13,
    "ecc_uncorrected_dram_aggregate": 14,
    "ecc_corrected_sram_volatile": 21,
    "ecc_uncorrected_sram_volatile": Failed(3),
    "ecc_corrected_sram_aggregate": 23,
    "ecc_uncorrected_sram_aggregate": Failed(3),
    "sram_parity_volatile": 20,
    "sram_secded_volatile": 2,
    "sram_parity_aggregate": 20,
    "sram_secded_aggregate": 4,
    "sram_threshold_exceeded": 1,
    "remapped_rows_correctable": 5,
    "remapped_rows_uncorrectable": 6,
    "remapped_rows_pending": 1,
    "remapped_rows_failed": 0,
    "remapped_row_banks_low": 7,
    "remapped_row_banks_exhausted": 8,
    "retired_pages_single_bit": 31,
    "retired_pages_double_bit": 32,
    "retired_pages_pending": 1,
    "slowdown_celsius": 87,
    "shutdown_celsius": 92,
    "operating_max_celsius": 85,
    "memory_max_celsius": 95,
    "fabric_state": 3,
    "fabric_status": 0,
    "fabric_health": 0b0001_10_10_01_10,
    "recovery_action": 2,
    "persistence_mode": 1,
    "mig_mode": 0,
    "mig_mode_pending": 1,
    "compute_mode": 3,
    "bar1_total_bytes": 137_438_953_472,
    "bar1_used_bytes": 20_781_727_744,
    "license": 1,
    "accounting_mode": 0,
}


def slow(replies: Replies | None = None, limits: Limits | None = None) -> Any:
    builder = SampleBuilder("nvidia:x")
    slow_fields(builder, SLOW_REPLIES | (replies or {}), limits or Limits())
    return builder.build()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_total_bytes", 85_520_809_984),
        ("memory_reserved_bytes", 502_267_904),
        ("power_limit_watts", 650.5),
        ("sm_clock_max_hertz", 1.98e9),
        ("memory_clock_max_hertz", 2.619e9),
        ("pcie_link_generation", 4),
        ("pcie_link_generation_max", 5),
        ("pcie_link_width", 8),
        ("pcie_link_width_max", 16),
        ("pcie_replays", 9),
        ("ecc_corrected_volatile_errors", 1),
        ("ecc_uncorrected_volatile_errors", 2),
        ("ecc_corrected_aggregate_errors", 3),
        ("ecc_uncorrected_aggregate_errors", 4),
        ("remapped_rows_correctable", 5),
        ("remapped_rows_uncorrectable", 6),
        ("remapped_rows_pending", True),
        ("remapped_rows_failed", False),
        ("power_limit_min_watts", 200),
        ("power_limit_default_watts", 700),
        ("graphics_clock_hertz", 1.755e9),
        ("graphics_clock_max_hertz", 1.981e9),
        ("video_clock_hertz", 1.545e9),
        ("video_clock_max_hertz", 1.546e9),
        ("throttled_sync_boost_seconds", 1.5),
        ("throttled_board_limit_seconds", 2.5),
        ("throttled_low_utilization_seconds", 3.5),
        ("throttled_reliability_seconds", 4.5),
        ("throttled_hardware_thermal_seconds", 5.5),
        ("throttled_power_brake_seconds", 6.5),
        ("pcie_tx_bytes_per_second", 352_000),
        ("pcie_rx_bytes_per_second", 329_000),
        ("ecc_enabled", True),
        ("ecc_corrected_dram_volatile_errors", 11),
        ("ecc_uncorrected_dram_volatile_errors", 12),
        ("ecc_corrected_dram_aggregate_errors", 13),
        ("ecc_uncorrected_dram_aggregate_errors", 14),
        ("ecc_corrected_sram_volatile_errors", 21),
        ("ecc_uncorrected_sram_volatile_errors", 22),
        ("ecc_corrected_sram_aggregate_errors", 23),
        ("ecc_uncorrected_sram_aggregate_errors", 24),
        ("ecc_sram_threshold_exceeded", True),
        ("remapped_row_banks_low", 7),
        ("remapped_row_banks_exhausted", 8),
        ("retired_pages_single_bit", 31),
        ("retired_pages_double_bit", 32),
        ("retired_pages_pending", True),
        ("fabric_state", 3),
        ("fabric_unhealthy", 1 << 1),
        ("recovery_action", 2),
        ("persistence_mode", True),
        ("partitioning_enabled", False),
        ("partitioning_pending", True),
        ("compute_mode", 3),
        ("bar1_total_bytes", 137_438_953_472),
        ("bar1_used_bytes", 20_781_727_744),
        ("license_valid", True),
        ("accounting_enabled", False),
        ("temperature_operating_max_celsius", 85),
        ("temperature_memory_max_celsius", 95),
        ("temperature_slowdown_celsius", 87),
        ("temperature_shutdown_celsius", 92),
    ],
)
def test_slow_units(field: str, value: float) -> None:
    assert getattr(slow(), field) == pytest.approx(value, rel=1e-6)


def test_every_slow_field_of_the_catalogue_is_said_here_or_with_the_links() -> None:
    builder = SampleBuilder("nvidia:x")
    link_fields(builder, 1, [{"state": 1, "replay": 0, "recovery": 0, "crc": 0}])
    links = builder.build()
    assert {metric.name for metric in SLOW if not slow().HasField(metric.name) and not links.HasField(metric.name)} == set()


def test_thresholds_follow_from_the_margins_once() -> None:
    limits = Limits()
    margins: Replies = {
        **{f"{which}_celsius": Failed(3) for which in ("slowdown", "shutdown", "operating_max", "memory_max")},
        "margin_celsius": 26,
        "slowdown_margin_celsius": -2,
        "shutdown_margin_celsius": -8,
        "operating_max_margin_celsius": 0,
        "memory_max_margin_celsius": 0,
    }
    for temperature in (59, 60):
        sample = slow(margins | {"temperature_celsius": temperature}, limits)
        assert (sample.temperature_slowdown_celsius, sample.temperature_shutdown_celsius) == (87, 93)
        assert sample.temperature_operating_max_celsius == 85
        assert why(sample, "temperature_memory_max_celsius") == "not_supported"


def test_thresholds_that_cannot_be_had_are_absent() -> None:
    sample = slow({"slowdown_celsius": Failed(3), "shutdown_celsius": Failed(4), "memory_max_celsius": 0})
    assert (why(sample, "temperature_slowdown_celsius"), why(sample, "temperature_shutdown_celsius")) == ("not_supported", "no_permission")
    assert why(sample, "temperature_memory_max_celsius") == "not_supported"


@pytest.mark.parametrize(
    ("state", "status", "value"),
    [
        (0, 0, Absent("not_supported")),
        (1, 0, 1),
        (2, 0, 2),
        (3, 0, 3),
        (3, 999, 4),
        (Failed(3), Failed(3), Absent("not_supported")),
        (Failed(13), Failed(13), Absent("not_supported")),
        (Failed(4), Failed(4), Absent("no_permission")),
    ],
    ids=["no fabric", "not started", "in progress", "joined", "joined with an error", "not supported", "old driver", "no permission"],
)
def test_fabric_state(state: Any, status: Any, value: object) -> None:
    assert fabric_state(state, status) == value


@pytest.mark.parametrize(
    ("mask", "value"),
    [
        (0, Absent("not_supported")),
        (0b0001_10_10_10_10, 0),
        (0b0001_10_10_10_01, 1 << 0),
        (0b0001_10_01_10_10, 1 << 2),
        (0b0001_01_10_10_10, 1 << 3),
        (0b0100_10_10_10_10, 1 << 4),
        (0b0000_00_00_00_10, 0),
        (0b01_10_0001_10_10_10_10, 0),
        (Failed(25), Absent("not_supported")),
    ],
    ids=["tells nothing", "well", "bandwidth", "route", "timeout", "configuration", "tells of one", "of a later release", "old struct"],
)
def test_fabric_health(mask: Any, value: object) -> None:
    assert fabric_unhealthy(3, mask) == value


def test_a_board_without_a_fabric_is_not_unhealthy() -> None:
    assert fabric_unhealthy(0, 0b0100_01_01_01_01) == Absent("not_supported")


@pytest.mark.parametrize(
    ("replies", "value"),
    [
        ({"recovery_action": 4}, 4),
        ({"recovery_action": 9}, 9),
        ({"reset_wanted": 0, "drain_and_reset_wanted": 0}, 0),
        ({"reset_wanted": 1, "drain_and_reset_wanted": 0}, 1),
        ({"reset_wanted": 1, "drain_and_reset_wanted": 1}, 4),
        ({"recovery_action": Failed(3), "reset_wanted": 1, "drain_and_reset_wanted": 0}, 1),
        ({"recovery_action": Failed(999), "reset_wanted": 1, "drain_and_reset_wanted": 0}, Absent("error")),
        ({}, Absent("not_supported")),
    ],
    ids=["drain and reset", "of a later release", "none", "reset", "both", "before the word", "unreadable", "neither"],
)
def test_recovery_action(replies: Replies, value: object) -> None:
    assert recovery_action(replies) == value
