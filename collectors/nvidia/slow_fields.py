"""Understands what a card answers once a minute: every slow field of the catalogue is said or absent, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from collectors.nvidia.readings import ABSENT, Scale, first, reading
from collectors.nvidia.reply import Failed, Replies, Reply
from schemas.builder import SampleBuilder
from schemas.telemetry import v1
from schemas.values import Absent, Reading

_PLAIN: Final[tuple[Scale, ...]] = (
    ("memory_total_bytes", "memory_total_bytes", 1),
    ("memory_reserved_bytes", "memory_reserved_bytes", 1),
    ("power_limit_watts", "power_limit_milliwatts", 1e-3),
    ("power_limit_min_watts", "power_limit_min_milliwatts", 1e-3),
    ("power_limit_default_watts", "power_default_milliwatts", 1e-3),
    ("sm_clock_max_hertz", "sm_clock_max_megahertz", 1e6),
    ("memory_clock_max_hertz", "memory_clock_max_megahertz", 1e6),
    ("graphics_clock_hertz", "graphics_clock_megahertz", 1e6),
    ("graphics_clock_max_hertz", "graphics_clock_max_megahertz", 1e6),
    ("video_clock_hertz", "video_clock_megahertz", 1e6),
    ("video_clock_max_hertz", "video_clock_max_megahertz", 1e6),
    ("throttled_hardware_thermal_seconds", "hardware_thermal_nanoseconds", 1e-9),
    ("throttled_power_brake_seconds", "power_brake_nanoseconds", 1e-9),
    ("pcie_link_generation", "pcie_generation", 1),
    ("pcie_link_generation_max", "pcie_generation_max", 1),
    ("pcie_link_width", "pcie_width", 1),
    ("pcie_link_width_max", "pcie_width_max", 1),
    ("pcie_tx_bytes_per_second", "pcie_tx_kilobytes_per_second", 1000),
    ("pcie_rx_bytes_per_second", "pcie_rx_kilobytes_per_second", 1000),
    ("ecc_enabled", "ecc_mode", 1),
    ("ecc_corrected_volatile_errors", "ecc_corrected_volatile", 1),
    ("ecc_uncorrected_volatile_errors", "ecc_uncorrected_volatile", 1),
    ("ecc_corrected_aggregate_errors", "ecc_corrected_aggregate", 1),
    ("ecc_uncorrected_aggregate_errors", "ecc_uncorrected_aggregate", 1),
    ("ecc_corrected_dram_volatile_errors", "ecc_corrected_dram_volatile", 1),
    ("ecc_uncorrected_dram_volatile_errors", "ecc_uncorrected_dram_volatile", 1),
    ("ecc_corrected_dram_aggregate_errors", "ecc_corrected_dram_aggregate", 1),
    ("ecc_uncorrected_dram_aggregate_errors", "ecc_uncorrected_dram_aggregate", 1),
    ("ecc_sram_threshold_exceeded", "sram_threshold_exceeded", 1),
    ("remapped_rows_correctable", "remapped_rows_correctable", 1),
    ("remapped_rows_uncorrectable", "remapped_rows_uncorrectable", 1),
    ("remapped_rows_pending", "remapped_rows_pending", 1),
    ("remapped_rows_failed", "remapped_rows_failed", 1),
    ("remapped_row_banks_low", "remapped_row_banks_low", 1),
    ("remapped_row_banks_exhausted", "remapped_row_banks_exhausted", 1),
    ("retired_pages_single_bit", "retired_pages_single_bit", 1),
    ("retired_pages_double_bit", "retired_pages_double_bit", 1),
    ("retired_pages_pending", "retired_pages_pending", 1),
    ("persistence_mode", "persistence_mode", 1),
    ("partitioning_enabled", "mig_mode", 1),
    ("compute_mode", "compute_mode", 1),
    ("bar1_total_bytes", "bar1_total_bytes", 1),
    ("bar1_used_bytes", "bar1_used_bytes", 1),
    ("accounting_enabled", "accounting_mode", 1),
    ("license_valid", "license", 1),
)
_EITHER: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    "pcie_replays": (("pcie_replays", 1), ("pcie_replays_call", 1)),
    "ecc_corrected_sram_volatile_errors": (("ecc_corrected_sram_volatile", 1), ("sram_corrected_volatile", 1)),
    "ecc_corrected_sram_aggregate_errors": (("ecc_corrected_sram_aggregate", 1), ("sram_corrected_aggregate", 1)),
    "ecc_uncorrected_sram_volatile_errors": (("ecc_uncorrected_sram_volatile", 1), ("sram_uncorrected_volatile", 1)),
    "ecc_uncorrected_sram_aggregate_errors": (("ecc_uncorrected_sram_aggregate", 1), ("sram_uncorrected_aggregate", 1)),
} | {
    f"throttled_{name}_seconds": ((f"policy_{name}_nanoseconds", 1e-9), (f"violation_{name}_nanoseconds", 1e-9))
    for name in ("sync_boost", "board_limit", "low_utilization", "reliability")
}
_THRESHOLDS: Final = ("slowdown", "shutdown", "operating_max", "memory_max")

_COMPLETED: Final = 3
"""nvmlGpuFabricState_t."""
_TWO_BITS: Final = {
    0: v1.FabricTrouble.FABRIC_TROUBLE_DEGRADED_BANDWIDTH,
    2: v1.FabricTrouble.FABRIC_TROUBLE_ROUTE_RECOVERY,
    4: v1.FabricTrouble.FABRIC_TROUBLE_ROUTE_UNHEALTHY,
    6: v1.FabricTrouble.FABRIC_TROUBLE_ACCESS_TIMEOUT_RECOVERY,
}
"""Where nvml.h's NVML_GPU_FABRIC_HEALTH_MASK has each word of two bits: 0 not supported, 1 true, 2 false."""
_CONFIGURATION_SHIFT: Final = 8
"""Four bits: 0 not supported, 1 right, from 2 on what is wrong."""


@dataclass(slots=True)
class Limits:
    """Temperatures at which a card does something, once they are known."""

    celsius: dict[str, float] = field(default_factory=dict)


def slow_fields(builder: SampleBuilder, replies: Replies, limits: Limits) -> None:
    """Set what is due with the slow cadence, but for the links; `replies` include the fast ones."""
    put, get = builder.set, replies.get
    _sum_sram(replies)
    for name, reply, factor in _PLAIN:
        put(name, reading(get(reply), factor))
    for name, sources in _EITHER.items():
        put(name, first(sources, replies))
    for which in _THRESHOLDS:
        put(f"temperature_{which}_celsius", threshold(which, replies, limits))
    put("partitioning_pending", _differs(get("mig_mode"), get("mig_mode_pending")))
    put("fabric_state", fabric_state(get("fabric_state"), get("fabric_status")))
    put("fabric_unhealthy", fabric_unhealthy(get("fabric_state"), get("fabric_health")))
    put("recovery_action", recovery_action(replies))


def threshold(which: str, replies: Replies, limits: Limits) -> Reading:
    """The limit itself where NVML tells it; else from the distance to it (T.Limit), computed once because margins are whole degrees.

    The distance of the memory's limit is told in the core's terms, which says nothing of the memory's temperature.
    """
    direct = replies.get(f"{which}_celsius")
    if isinstance(direct, int) and direct > 0:
        limits.celsius[which] = float(direct)
    elif which not in limits.celsius and which != "memory_max":
        core, margin, limit = (replies.get(f"{name}_celsius") for name in ("temperature", "margin", f"{which}_margin"))
        if isinstance(core, int) and isinstance(margin, int) and isinstance(limit, int):
            limits.celsius[which] = float(core + margin - limit)
    if which in limits.celsius:
        return limits.celsius[which]
    return reading(direct, 1) if direct != 0 else ABSENT["not_supported"]


def fabric_state(state: Reply | None, status: Reply | None) -> Reading:
    """A card without a fabric (PCIe boards) has no state: that is no trouble (gpud issues 1140 and 1147)."""
    if not isinstance(state, int):
        return reading(state, 1)
    if state == v1.FabricState.FABRIC_STATE_NOT_SUPPORTED:
        return ABSENT["not_supported"]
    if state == _COMPLETED and status != 0:
        return int(v1.FabricState.FABRIC_STATE_FAILED)
    return state


def fabric_unhealthy(state: Reply | None, mask: Reply | None) -> Reading:
    """The troubles that are there; absent where the card says that it can tell of none."""
    if isinstance(state, int) and state == v1.FabricState.FABRIC_STATE_NOT_SUPPORTED:
        return ABSENT["not_supported"]
    if not isinstance(mask, int):
        return reading(mask, 1)
    words = {trouble: mask >> shift & 3 for shift, trouble in _TWO_BITS.items()}
    configuration = mask >> _CONFIGURATION_SHIFT & 15
    if not configuration and not any(words.values()):
        return ABSENT["not_supported"]
    wrong = sum(1 << trouble for trouble, word in words.items() if word == 1)
    return wrong | (configuration > 1) << v1.FabricTrouble.FABRIC_TROUBLE_INCORRECT_CONFIGURATION


def recovery_action(replies: Replies) -> Reading:
    """NVML's own word; before it there were two flags."""
    action = reading(replies.get("recovery_action"), 1)
    if not isinstance(action, Absent) or action.reason != "not_supported":
        return action
    reset, drain = replies.get("reset_wanted"), replies.get("drain_and_reset_wanted")
    if not isinstance(reset, int) or not isinstance(drain, int):
        return action
    if drain:
        return int(v1.RecoveryAction.RECOVERY_ACTION_DRAIN_AND_RESET)
    return int(v1.RecoveryAction.RECOVERY_ACTION_RESET_DEVICE if reset else v1.RecoveryAction.RECOVERY_ACTION_NONE)


def _sum_sram(replies: Replies) -> None:
    for counter in ("volatile", "aggregate"):
        parity, secded = replies.get(f"sram_parity_{counter}"), replies.get(f"sram_secded_{counter}")
        if isinstance(parity, int) and isinstance(secded, int):
            replies[f"sram_uncorrected_{counter}"] = parity + secded
        elif isinstance(parity, Failed):
            replies[f"sram_uncorrected_{counter}"] = parity


def _differs(now: Reply | None, later: Reply | None) -> Reading:
    if isinstance(now, int) and isinstance(later, int):
        return int(now != later)
    return reading(now if isinstance(now, Failed) else later, 1)
