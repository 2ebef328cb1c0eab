"""Understands what a card answers each tick: every fast field of the catalogue is said or absent, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from collectors.nvidia.counters import Unwrapped
from collectors.nvidia.readings import ABSENT, BLANKS, active, first, percent, reading
from collectors.nvidia.reply import Count32, Replies, Reply
from schemas.builder import SampleBuilder, Scaled
from schemas.telemetry import v1
from schemas.values import Absent, Reading

_PLAIN: Final[tuple[Scaled, ...]] = (
    ("utilization_ratio", "utilization_percent", 1e-2),
    ("memory_busy_ratio", "memory_busy_percent", 1e-2),
    ("encoder_utilization_ratio", "encoder_percent", 1e-2),
    ("decoder_utilization_ratio", "decoder_percent", 1e-2),
    ("memory_used_bytes", "memory_used_bytes", 1),
    ("temperature_celsius", "temperature_celsius", 1),
    ("temperature_margin_celsius", "margin_celsius", 1),
    ("memory_temperature_celsius", "memory_temperature_celsius", 1),
    ("sm_clock_hertz", "sm_clock_megahertz", 1e6),
    ("memory_clock_hertz", "memory_clock_megahertz", 1e6),
    ("fan_ratio", "fan_percent", 1e-2),
    ("performance_state", "performance_state", 1),
    ("power_average_watts", "power_average_milliwatts", 1e-3),
    ("pcie_tx_bytes", "pcie_tx_bytes", 1),
    ("pcie_rx_bytes", "pcie_rx_bytes", 1),
)
_PERCENTS: Final = frozenset(name for name, reply, _ in _PLAIN if reply.endswith("_percent") and reply != "fan_percent")

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
_MEANS: Final = frozenset(("clock_reasons", *(reply for sources in _EITHER.values() for reply, _ in sources)))
"""Replies that say something beside the plain ones."""
_PROFILE: Final[tuple[Scaled, ...]] = tuple((name, reply, 1e-2) for name, reply in PROFILED)

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

    chosen: dict[str, str] = field(default_factory=dict)
    """Which of several sources of a field answered first; kept, because their counters start at different values."""
    plan: tuple[Scaled, ...] = _PLAIN
    """What is just a number times a factor; the chosen sources are among it."""
    by_reply: dict[str, Scaled] = field(default_factory=lambda: {entry[1]: entry for entry in _PLAIN})
    """The plan by the name of the reply."""
    counts_32: bool = False
    """Whether a counter has to be unwrapped at each tick."""
    open: set[str] = field(default_factory=lambda: set(_EITHER))
    """Fields of which no source has answered yet."""
    pcie_tx: Unwrapped = field(default_factory=Unwrapped)
    pcie_rx: Unwrapped = field(default_factory=Unwrapped)


def fast_fields(builder: SampleBuilder, replies: Replies, profile: Replies, memory: Memory, *, mig: bool, seconds: float) -> None:
    """Set what is due each tick. `profile` is empty at the first read, which has nothing to compare with; `seconds` since the last."""
    left = builder.scale(memory.plan, replies, BLANKS)
    for name, reply, factor in left:
        builder.set(name, _odd(name, replies.get(reply), factor, profile, memory, seconds))
    for name in memory.open:
        builder.set(name, _choose(name, replies, memory))
    memory.open -= memory.chosen.keys()
    if replies.get("memory_temperature_celsius") == 0:
        builder.absent("memory_temperature_celsius", "not_supported")  # boards without the sensor answer 0
    builder.set("throttle_reasons", throttle_reasons(replies.get("clock_reasons")))
    if profile:
        for name, reply, _ in builder.scale(_PROFILE, profile, ()):
            if reply in profile:
                builder.set(name, active(profile[reply]))
    if mig:
        for name in MIG_HIDES:
            builder.absent(name, "not_supported")


@dataclass(frozen=True, slots=True)
class Last:
    """What a card answered at the tick before, and what was made of it."""

    replies: Replies
    profile: Replies
    builder: SampleBuilder


def fast_changes(last: Last, replies: Replies, profile: Replies, memory: Memory) -> SampleBuilder | None:
    """The same as fast_fields makes, from what it made at the tick before and what is no longer equal; None where that cannot be.

    Much of what a card says stays as it is from one second to the next: modes, clocks, limits that hold, all of an idle card.
    """
    if memory.counts_32 or len(replies) != len(last.replies) or len(profile) != len(last.profile) or not profile:
        return None
    before = last.replies
    changed = [name for name, value in replies.items() if before.get(name) != value and (name in memory.by_reply or name in _MEANS)]
    plan = [memory.by_reply[name] for name in changed if name in memory.by_reply]
    reasons = "clock_reasons" in changed
    if len(plan) + reasons != len(changed):
        return None  # a source that was silent answers
    builder = last.builder.again()
    left = builder.scale(plan, replies, BLANKS)
    for name, reply, factor in left:
        builder.set(name, _odd(name, replies.get(reply), factor, profile, memory, 0.0))
    if reasons:
        builder.set("throttle_reasons", throttle_reasons(replies["clock_reasons"]))
    cold = "memory_temperature_celsius" in changed and replies["memory_temperature_celsius"] == 0
    if cold:
        builder.absent("memory_temperature_celsius", "not_supported")
    if profile is not last.profile:
        then = last.profile
        moved = [entry for entry in _PROFILE if profile.get(entry[1]) != then.get(entry[1])]
        strange = builder.scale(moved, profile, ())
        for name, reply, _ in strange:
            builder.set(name, active(profile[reply]))
        left += strange
    return builder.recount(odd=bool(left) or reasons or cold)


def _odd(name: str, reply: Reply | None, factor: float, profile: Replies, memory: Memory, seconds: float) -> Reading:
    """What is no plain number in its range."""
    if isinstance(reply, Count32):
        memory.counts_32 = True
    if isinstance(reply, Count32) and name == "pcie_tx_bytes":
        return _unwrapped(reply, profile, "pcie_tx_mib_s", memory.pcie_tx, seconds)
    if isinstance(reply, Count32) and name == "pcie_rx_bytes":
        return _unwrapped(reply, profile, "pcie_rx_mib_s", memory.pcie_rx, seconds)
    if name == "performance_state" and reply == _PSTATE_UNKNOWN:
        return ABSENT["error"]
    return percent(reply) if name in _PERCENTS else reading(reply, factor)


def throttle_reasons(reply: Reply | None) -> Reading:
    """NVML's bits in ours; bits that the catalogue does not name are left out."""
    if not isinstance(reply, int):
        return reading(reply, 1)
    return sum(1 << ours for theirs, ours in _REASON_BIT.items() if reply & theirs) if reply else 0


def _choose(name: str, replies: Replies, memory: Memory) -> Reading:
    """The first source that answers, which is kept: counters of two sources start at different values."""
    for reply, factor in _EITHER[name]:
        if not isinstance(reading(replies.get(reply), factor), Absent):
            memory.chosen[name] = reply
            memory.plan += ((name, reply, factor),)
            memory.by_reply[reply] = name, reply, factor
            break
    return first(_EITHER[name], replies)


def _unwrapped(reply: Count32, profile: Replies, rate_name: str, counter: Unwrapped, seconds: float) -> Reading:
    if not profile:
        return counter.begin(reply.value)
    rate = profile.get(rate_name)
    return counter.step(reply.value, rate * 2**20 * seconds if isinstance(rate, float) else None)
