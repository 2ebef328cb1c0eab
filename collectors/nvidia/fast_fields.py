"""Understands what a card answers each tick: every fast field of the catalogue is said or absent, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from collectors.nvidia.counters import Unwrapped
from collectors.nvidia.readings import ABSENT, PLAIN_BELOW, active, first, percent, reading
from collectors.nvidia.reply import Count32, Replies, Reply
from schemas.builder import SampleBuilder
from schemas.telemetry import v1
from schemas.values import Absent, Reading

_PLAIN: Final[tuple[tuple[str, str, float, Callable[[Reply | None, float], Reading]], ...]] = (
    ("utilization_ratio", "utilization_percent", 1e-2, percent),
    ("memory_busy_ratio", "memory_busy_percent", 1e-2, percent),
    ("encoder_utilization_ratio", "encoder_percent", 1e-2, percent),
    ("decoder_utilization_ratio", "decoder_percent", 1e-2, percent),
    ("memory_used_bytes", "memory_used_bytes", 1, reading),
    ("temperature_celsius", "temperature_celsius", 1, reading),
    ("temperature_margin_celsius", "margin_celsius", 1, reading),
    ("sm_clock_hertz", "sm_clock_megahertz", 1e6, reading),
    ("memory_clock_hertz", "memory_clock_megahertz", 1e6, reading),
    ("fan_ratio", "fan_percent", 1e-2, reading),
    ("power_average_watts", "power_average_milliwatts", 1e-3, reading),
)
"""Field of the catalogue, name of the reply, factor, and what understands a reply that is no plain number."""

PROFILED: Final = (
    ("graphics_active_ratio", "graphics_active_percent"),
    ("sm_active_ratio", "sm_active_percent"),
    ("sm_occupancy_ratio", "sm_occupancy_percent"),
    ("tensor_active_ratio", "tensor_active_percent"),
    ("dram_active_ratio", "dram_active_percent"),
    ("fp64_active_ratio", "fp64_active_percent"),
    ("fp32_active_ratio", "fp32_active_percent"),
    ("fp16_active_ratio", "fp16_active_percent"),
)
"""Fields that GPM gives, and DCGM's profiling where there is no GPM."""

_EITHER: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    "power_watts": (("power_instant_milliwatts", 1e-3), ("power_milliwatts", 1e-3)),
    "energy_joules": (("energy_millijoules", 1e-3), ("energy_total_millijoules", 1e-3)),
    "interconnect_tx_bytes": (("nvlink_tx_bytes", 1), ("nvlink_tx_kibibytes", 1024)),
    "interconnect_rx_bytes": (("nvlink_rx_bytes", 1), ("nvlink_rx_kibibytes", 1024)),
    "throttled_power_seconds": (("policy_power_nanoseconds", 1e-9), ("violation_power_nanoseconds", 1e-9)),
    "throttled_thermal_seconds": (("policy_thermal_nanoseconds", 1e-9), ("violation_thermal_nanoseconds", 1e-9)),
}
MIG_HIDES: Final = (
    *("utilization_ratio", "memory_busy_ratio", "encoder_utilization_ratio", "decoder_utilization_ratio"),
    *(name for name, _ in PROFILED),
)
"""What the whole card's figure says nothing of while it is cut into instances."""
_HIDDEN: Final = dict.fromkeys(MIG_HIDES, ABSENT["not_supported"])

_REASON_BIT: Final = {
    0x1: v1.ThrottleReason.THROTTLE_REASON_IDLE,
    0x2: v1.ThrottleReason.THROTTLE_REASON_APPLICATION_CLOCKS,
    0x4: v1.ThrottleReason.THROTTLE_REASON_SOFTWARE_POWER_CAP,
    0x8: v1.ThrottleReason.THROTTLE_REASON_HARDWARE_SLOWDOWN,
    0x10: v1.ThrottleReason.THROTTLE_REASON_SYNC_BOOST,
    0x20: v1.ThrottleReason.THROTTLE_REASON_SOFTWARE_THERMAL,
    0x40: v1.ThrottleReason.THROTTLE_REASON_HARDWARE_THERMAL,
    0x80: v1.ThrottleReason.THROTTLE_REASON_HARDWARE_POWER_BRAKE,
    0x100: v1.ThrottleReason.THROTTLE_REASON_DISPLAY_CLOCKS,
}
"""nvmlClocksEventReasons (nvml.h) to our bits."""

_PSTATE_UNKNOWN: Final = 32


@dataclass(slots=True)
class Memory:
    """What must be remembered of a card between two replies."""

    chosen: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Which of several sources of a field answered first; kept, because their counters start at different values."""
    pcie_tx: Unwrapped = field(default_factory=Unwrapped)
    pcie_rx: Unwrapped = field(default_factory=Unwrapped)


def fast_fields(builder: SampleBuilder, replies: Replies, profile: Replies, memory: Memory, *, mig: bool, seconds: float) -> None:
    """Set what is due each tick. `profile` is empty at the first read, which has nothing to compare with; `seconds` since the last."""
    get = replies.get
    said: dict[str, Reading] = {}
    for name, reply, factor, otherwise in _PLAIN:
        value = get(reply)
        # Nearly all are plain numbers; the check in place saves half of the time that understanding a tick takes.
        said[name] = value * factor if value.__class__ is int and value < PLAIN_BELOW else otherwise(value, factor)
    for name, sources in _EITHER.items():
        kept = memory.chosen.get(name)
        if kept is None:
            said[name] = _choose(name, sources, replies, memory)
        else:
            value, factor = get(kept[0]), kept[1]
            said[name] = value * factor if value.__class__ is int and value < PLAIN_BELOW else reading(value, factor)
    temperature, state = get("memory_temperature_celsius"), get("performance_state")
    # Boards without the sensor answer 0.
    said["memory_temperature_celsius"] = ABSENT["not_supported"] if temperature == 0 else reading(temperature, 1)
    said["performance_state"] = ABSENT["error"] if state == _PSTATE_UNKNOWN else reading(state, 1)
    said["throttle_reasons"] = throttle_reasons(get("clock_reasons"))
    for name, reply in PROFILED if profile else ():
        value = profile.get(reply)
        said[name] = value * 1e-2 if value.__class__ is float and value <= 100 else active(value)
    said["pcie_tx_bytes"] = _pcie(get("pcie_tx_bytes"), profile, "pcie_tx_mib_s", memory.pcie_tx, seconds)
    said["pcie_rx_bytes"] = _pcie(get("pcie_rx_bytes"), profile, "pcie_rx_mib_s", memory.pcie_rx, seconds)
    if mig:
        said.update(_HIDDEN)
    builder.update(said)


def throttle_reasons(reply: Reply | None) -> Reading:
    """NVML's bits in ours; bits that the catalogue does not name are left out."""
    if not isinstance(reply, int):
        return reading(reply, 1)
    return sum(1 << ours for theirs, ours in _REASON_BIT.items() if reply & theirs) if reply else 0


def _choose(name: str, sources: tuple[tuple[str, float], ...], replies: Replies, memory: Memory) -> Reading:
    """The first source that answers, which is kept: counters of two sources start at different values."""
    for reply, factor in sources:
        if not isinstance(reading(replies.get(reply), factor), Absent):
            memory.chosen[name] = reply, factor
            break
    return first(sources, replies)


def _pcie(reply: Reply | None, profile: Replies, rate_name: str, counter: Unwrapped, seconds: float) -> Reading:
    if not isinstance(reply, Count32):
        return reading(reply, 1)
    if not profile:
        return counter.begin(reply.value)
    rate = profile.get(rate_name)
    return counter.step(reply.value, rate * 2**20 * seconds if isinstance(rate, float) else None)
