"""Understands NVML's replies: vendor units become the catalogue's, return codes become reasons, and every field is said or absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from collectors.nvidia.counters import Unwrapped
from collectors.nvidia.reply import Count32, Failed, Replies, Reply
from schemas.builder import SampleBuilder
from schemas.catalogue import CATALOGUE
from schemas.identity import device_uid, normal_bdf
from schemas.telemetry import v1
from schemas.values import Absent, Reading, Reason

_REASON: Final[dict[int, Reason]] = {
    3: "not_supported",
    6: "not_supported",  # not found: no such sensor
    13: "not_supported",  # the driver is older than the call
    25: "not_supported",  # the driver does not know this version of the struct
    26: "not_supported",  # deprecated on this device
    4: "no_permission",
    15: "lost",
    16: "lost",  # the device does not work before a reset
    28: "lost",
}
_LOST: Final = frozenset(code for code, reason in _REASON.items() if reason == "lost")

Scale = tuple[str, str, float]
"""Field of the catalogue, name of the reply, factor."""

_FAST: Final[tuple[Scale, ...]] = (
    ("utilization_ratio", "utilization_percent", 1e-2),
    ("memory_used_bytes", "memory_used_bytes", 1),
    ("temperature_celsius", "temperature_celsius", 1),
    ("memory_temperature_celsius", "memory_temperature_celsius", 1),
    ("sm_clock_hertz", "sm_clock_megahertz", 1e6),
    ("memory_clock_hertz", "memory_clock_megahertz", 1e6),
    ("fan_ratio", "fan_percent", 1e-2),
    ("performance_state", "performance_state", 1),
)
_SLOW: Final[tuple[Scale, ...]] = (
    ("memory_total_bytes", "memory_total_bytes", 1),
    ("memory_reserved_bytes", "memory_reserved_bytes", 1),
    ("power_limit_watts", "power_limit_milliwatts", 1e-3),
    ("sm_clock_max_hertz", "sm_clock_max_megahertz", 1e6),
    ("memory_clock_max_hertz", "memory_clock_max_megahertz", 1e6),
    ("pcie_link_generation", "pcie_generation", 1),
    ("pcie_link_generation_max", "pcie_generation_max", 1),
    ("pcie_link_width", "pcie_width", 1),
    ("pcie_link_width_max", "pcie_width_max", 1),
    ("ecc_corrected_volatile_errors", "ecc_corrected_volatile", 1),
    ("ecc_uncorrected_volatile_errors", "ecc_uncorrected_volatile", 1),
    ("ecc_corrected_aggregate_errors", "ecc_corrected_aggregate", 1),
    ("ecc_uncorrected_aggregate_errors", "ecc_uncorrected_aggregate", 1),
    ("remapped_rows_correctable", "remapped_rows_correctable", 1),
    ("remapped_rows_uncorrectable", "remapped_rows_uncorrectable", 1),
    ("remapped_rows_pending", "remapped_rows_pending", 1),
    ("remapped_rows_failed", "remapped_rows_failed", 1),
    ("interconnect_errors", "link_errors", 1),
    ("interconnect_links_active", "links_active", 1),
)
_EITHER_FAST: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    "power_watts": (("power_instant_milliwatts", 1e-3), ("power_milliwatts", 1e-3)),
    "energy_joules": (("energy_millijoules", 1e-3), ("energy_total_millijoules", 1e-3)),
    "interconnect_tx_bytes": (("nvlink_tx_bytes", 1), ("nvlink_tx_kibibytes", 1024)),
    "interconnect_rx_bytes": (("nvlink_rx_bytes", 1), ("nvlink_rx_kibibytes", 1024)),
    "throttled_power_seconds": (("policy_power_nanoseconds", 1e-9), ("violation_power_nanoseconds", 1e-9)),
    "throttled_thermal_seconds": (("policy_thermal_nanoseconds", 1e-9), ("violation_thermal_nanoseconds", 1e-9)),
}
_EITHER_SLOW: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    "pcie_replays": (("pcie_replays", 1), ("pcie_replays_call", 1)),
}
_PROFILED: Final[tuple[Scale, ...]] = (
    ("sm_active_ratio", "sm_active_percent", 1e-2),
    ("tensor_active_ratio", "tensor_active_percent", 1e-2),
    ("dram_active_ratio", "dram_active_percent", 1e-2),
)
_MIG_HIDES: Final = ("utilization_ratio", *(name for name, _, _ in _PROFILED))

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
_ALL_ONES: Final = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
"""NVML_VALUE_NOT_AVAILABLE in 32 and 64 bits, where a call succeeds without a value."""

_ROUNDING: Final = 1.02
"""A ratio so little above 1 is 1: SM activity is averaged over clocks that are not sampled at one instant."""


@dataclass(slots=True)
class Memory:
    """What must be remembered of a device between two replies."""

    chosen: dict[str, int] = field(default_factory=dict)
    """Which of several sources of a field answered first; kept, because their counters start at different values."""
    pcie_tx: Unwrapped = field(default_factory=Unwrapped)
    pcie_rx: Unwrapped = field(default_factory=Unwrapped)
    slowdown_celsius: float | None = None
    shutdown_celsius: float | None = None


def reason(code: int) -> Reason:
    """Why there is no value, from an NVML return code."""
    return _REASON.get(code, "error")


def reading(reply: Reply | None, factor: float) -> Reading:
    """A reply in the catalogue's unit; a blank all-ones value or a text is absent(error), a missing reply absent(not_supported)."""
    match reply:
        case None:
            return Absent("not_supported")
        case Failed(code):
            return Absent(reason(code))
        case Count32(value):
            return value * factor
        case str():
            return Absent("error")
        case _:
            if reply in _ALL_ONES:
                return Absent("error")
            return reply if factor == 1 else reply * factor


def lost(*parts: Mapping[str, Reply]) -> bool:
    """Whether any reply says that the device is gone or does not work before a reset."""
    return any(isinstance(reply, Failed) and reply.code in _LOST for replies in parts for reply in replies.values())


def lost_sample(uid: str, index: int) -> SampleBuilder:
    """Every field of the catalogue absent(lost): what was known of the device says nothing any more."""
    return all_absent(uid, index, "lost")


def all_absent(uid: str, index: int, why: Reason, *, slow: bool = True) -> SampleBuilder:
    """Every field, or every fast one, absent for one reason."""
    builder = SampleBuilder(uid, index)
    for metric in CATALOGUE:
        if slow or metric.cadence == "fast":
            builder.absent(metric.name, why)
    return builder


def fast_fields(builder: SampleBuilder, replies: Replies, profile: Replies, memory: Memory, *, mig: bool, seconds: float) -> None:
    """Set what is due each tick. `profile` is empty at the first read, which has nothing to compare with; `seconds` since the last."""
    for name, reply, factor in _FAST:
        builder.set(name, reading(replies.get(reply), factor))
    for name, sources in _EITHER_FAST.items():
        builder.set(name, _either(name, sources, replies, memory))
    if replies.get("memory_temperature_celsius") == 0:
        builder.absent("memory_temperature_celsius", "not_supported")  # boards without the sensor answer 0
    if replies.get("performance_state") == _PSTATE_UNKNOWN:
        builder.absent("performance_state", "error")
    builder.set("throttle_reasons", throttle_reasons(replies.get("clock_reasons")))
    for name, reply, factor in _PROFILED:
        if reply in profile:
            value = reading(profile[reply], factor)
            builder.set(name, min(value, 1.0) if isinstance(value, float) and value <= _ROUNDING else value)
    for name, direction, counter in (("pcie_tx_bytes", "tx", memory.pcie_tx), ("pcie_rx_bytes", "rx", memory.pcie_rx)):
        builder.set(name, _pcie(replies.get(name), profile, direction, counter, seconds))
    if mig:
        for name in _MIG_HIDES:
            builder.absent(name, "not_supported")  # the whole card's figure says nothing of its instances


def slow_fields(builder: SampleBuilder, replies: Replies, memory: Memory, temperature: Reply | None) -> None:
    """Set what is due with the slow cadence."""
    for name, reply, factor in _SLOW:
        builder.set(name, reading(replies.get(reply), factor))
    for name, sources in _EITHER_SLOW.items():
        builder.set(name, _either(name, sources, replies, memory))
    memory.slowdown_celsius = _threshold(replies, "slowdown", temperature, memory.slowdown_celsius)
    memory.shutdown_celsius = _threshold(replies, "shutdown", temperature, memory.shutdown_celsius)
    for which, value in (("slowdown", memory.slowdown_celsius), ("shutdown", memory.shutdown_celsius)):
        missing = reading(replies.get(f"{which}_celsius"), 1)
        builder.set(f"temperature_{which}_celsius", value if value is not None else missing)


def throttle_reasons(reply: Reply | None) -> Reading:
    """NVML's bits in ours; bits that the catalogue does not name are left out."""
    if not isinstance(reply, int):
        return reading(reply, 1)
    return sum(1 << ours for theirs, ours in _REASON_BIT.items() if reply & theirs)


def info(replies: Replies, node: str, index: int) -> v1.DeviceInfo | None:
    """Identity and constants; None where neither uuid nor PCI address can be read, so that nothing would be told apart."""

    def told(name: str) -> str:
        reply = replies.get(name)
        return reply if isinstance(reply, str) else ""

    try:
        bdf = normal_bdf(told("bdf"))
    except ValueError:
        bdf = ""
    if not told("uuid") and not bdf:
        return None
    found = v1.DeviceInfo(
        uid=device_uid("nvidia", unique=told("uuid"), node=node, bdf=bdf),
        vendor="nvidia",
        model=told("name"),
        serial=told("serial"),
        kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR,
        index=index,
        bdf=bdf,
        firmware_version=told("vbios"),
        board_part=told("board_part"),
    )
    module, limit = replies.get("module"), replies.get("power_limit_max_milliwatts")
    if isinstance(module, int):
        found.slot = str(module)
    if isinstance(limit, int):
        found.power_limit_max_watts = limit / 1000
    return found


def _either(name: str, sources: tuple[tuple[str, float], ...], replies: Replies, memory: Memory) -> Reading:
    """The first source that answers; once one has, only that one."""
    kept = memory.chosen.get(name)
    if kept is not None:
        reply, factor = sources[kept]
        return reading(replies.get(reply), factor)
    answers = [reading(replies.get(reply), factor) for reply, factor in sources]
    for i, answer in enumerate(answers):
        if not isinstance(answer, Absent):
            memory.chosen[name] = i
            return answer
    return next((a for a in answers if isinstance(a, Absent) and a.reason != "not_supported"), answers[0])


def _pcie(reply: Reply | None, profile: Replies, direction: str, counter: Unwrapped, seconds: float) -> Reading:
    if not isinstance(reply, Count32):
        return reading(reply, 1)
    if not profile:
        return counter.begin(reply.value)
    rate = profile.get(f"pcie_{direction}_mib_s")
    return counter.step(reply.value, rate * 2**20 * seconds if isinstance(rate, float) else None)


def _threshold(replies: Replies, which: str, temperature: Reply | None, known: float | None) -> float | None:
    """The limit itself where NVML tells it; else from the distance to it (T.Limit), computed once because margins are whole degrees."""
    direct = replies.get(f"{which}_celsius")
    if isinstance(direct, int) and direct > 0:
        return float(direct)
    if known is not None:
        return known
    margin, limit = replies.get("margin_celsius"), replies.get(f"{which}_margin_celsius")
    if isinstance(temperature, int) and isinstance(margin, int) and isinstance(limit, int):
        return float(temperature + margin - limit)
    return None
