"""What is asked of a card each tick: one batch of field values, a dozen calls, and nothing that it has said it does not have."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Final

from collectors.nvidia.calls import Arena, Call, Together, number, numbers, structure
from collectors.nvidia.fields import ALL_LINKS, Field, FieldBatch
from collectors.nvidia.reply import Replies, unsupported
from collectors.nvidia.source import Handle, Source

_ARENA_BYTES: Final = 1024

FIELDS: Final[dict[str, Field]] = {
    "memory_temperature_celsius": 82,
    "energy_millijoules": 83,
    "power_average_milliwatts": 185,
    "power_instant_milliwatts": 186,
    "pcie_tx_bytes": 197,
    "pcie_rx_bytes": 198,
    "nvlink_tx_kibibytes": (138, ALL_LINKS),
    "nvlink_rx_kibibytes": (139, ALL_LINKS),
    "nvlink_tx_bytes": (202, ALL_LINKS),
    "nvlink_rx_bytes": (204, ALL_LINKS),
    "policy_power_nanoseconds": 74,
    "policy_thermal_nanoseconds": 75,
}


class FastCalls:
    """The calls of one card in one session. A full look asks everything; the ticks after it only what was answered then."""

    def __init__(self, source: Source, handle: Handle) -> None:
        self._source, self._handle = source, handle
        self._arena = Arena(_ARENA_BYTES)
        self._every = tuple(_calls(source, handle, self._arena))
        self._every_field = FieldBatch(source, handle, FIELDS)
        self._calls: Together = Together((call for call in self._every if not call.stands_for), self._arena)
        self._fields: FieldBatch | None = self._every_field
        self._looked = False
        self.all_answered = False
        """Whether every reply of the last read is a value, as on a healthy card nearly always."""

    @property
    def count(self) -> int:
        """Driver calls of one tick."""
        return len(self._calls.calls) + (self._fields is not None)

    def read(self, *, everything: bool) -> Replies:
        """A reply by name; what is not asked has none, as if it were not supported."""
        if everything or not self._looked:
            self._looked, self.all_answered = True, False
            return self._look()
        replies: Replies = {}
        good = self._fields is None or self._fields.ask(replies)
        self.all_answered = self._calls.run(replies) and good
        return replies

    def _look(self) -> Replies:
        replies: Replies = {}
        self._every_field.ask(replies)
        kept = []
        for call in self._every:
            if call.stands_for and not unsupported(replies[call.stands_for]):
                continue
            known: Call | None = call
            while known is not None:
                known.run(replies)
                if not unsupported(replies[known.name]):
                    kept.append(known)
                    break
                known = known.otherwise
        self._calls = Together(kept, self._arena)
        fields = {name: field for name, field in FIELDS.items() if not unsupported(replies[name])}
        if self._fields is None or self._fields.names != tuple(fields):
            self._fields = FieldBatch(self._source, self._handle, fields) if fields else None
        return replies


def _calls(source: Source, handle: Handle, arena: Arena) -> Iterator[Call]:
    n = source.nvml
    yield memory(source, handle, arena)
    yield structure(
        source,
        {"utilization_percent": "gpu", "memory_busy_percent": "memory"},
        "nvmlDeviceGetUtilizationRates",
        handle,
        room=n.c_nvmlUtilization_t(),
        arena=arena,
    )
    yield structure(
        source,
        {"temperature_celsius": "temperature"},
        "nvmlDeviceGetTemperatureV",
        handle,
        room=n.c_nvmlTemperature_v1_t(n.nvmlTemperature_v1, n.NVML_TEMPERATURE_GPU),
        arena=arena,
        otherwise=number(source, "temperature_celsius", "nvmlDeviceGetTemperature", handle, n.NVML_TEMPERATURE_GPU, arena=arena),
    )
    yield structure(
        source,
        {"margin_celsius": "marginTemperature"},
        "nvmlDeviceGetMarginTemperature",
        handle,
        room=n.c_nvmlMarginTemperature_v1_t(n.nvmlMarginTemperature_v1),
        arena=arena,
    )
    yield number(source, "sm_clock_megahertz", "nvmlDeviceGetClockInfo", handle, n.NVML_CLOCK_SM, arena=arena)
    yield number(source, "memory_clock_megahertz", "nvmlDeviceGetClockInfo", handle, n.NVML_CLOCK_MEM, arena=arena)
    wide = ctypes.c_ulonglong
    before_535 = number(source, "clock_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", handle, room=wide, arena=arena)
    yield number(source, "clock_reasons", "nvmlDeviceGetCurrentClocksEventReasons", handle, room=wide, otherwise=before_535, arena=arena)
    yield number(source, "fan_percent", "nvmlDeviceGetFanSpeed", handle, arena=arena)
    yield number(source, "performance_state", "nvmlDeviceGetPerformanceState", handle, arena=arena)
    yield numbers(source, ("encoder_percent", ""), "nvmlDeviceGetEncoderUtilization", handle, arena=arena)
    yield numbers(source, ("decoder_percent", ""), "nvmlDeviceGetDecoderUtilization", handle, arena=arena)
    yield number(source, "power_milliwatts", "nvmlDeviceGetPowerUsage", handle, stands_for="power_instant_milliwatts", arena=arena)
    total_energy = "nvmlDeviceGetTotalEnergyConsumption"
    yield number(source, "energy_total_millijoules", total_energy, handle, room=wide, stands_for="energy_millijoules", arena=arena)
    for name, policy in (("power", n.NVML_PERF_POLICY_POWER), ("thermal", n.NVML_PERF_POLICY_THERMAL)):
        yield violation(source, handle, name, policy, stands_for=f"policy_{name}_nanoseconds", arena=arena)


def memory(source: Source, handle: Handle, arena: Arena | None = None) -> Call:
    """Memory of a card or instance, reserved memory apart; before driver 510 there is none of that, and `used` had it in it."""
    n = source.nvml
    before_510 = structure(
        source,
        {"memory_total_bytes": "total", "memory_used_bytes": "used"},
        "nvmlDeviceGetMemoryInfo",
        handle,
        room=n.c_nvmlMemory_t(),
        arena=arena,
    )
    return structure(
        source,
        {"memory_total_bytes": "total", "memory_used_bytes": "used", "memory_reserved_bytes": "reserved"},
        "nvmlDeviceGetMemoryInfo_v2",
        handle,
        room=n.c_nvmlMemory_v2_t(n.nvmlMemory_v2),
        arena=arena,
        otherwise=before_510,
    )


def violation(source: Source, handle: Handle, name: str, policy: int, stands_for: str = "", arena: Arena | None = None) -> Call:
    """Time spent below the asked clocks for one policy, in nanoseconds."""
    return structure(
        source,
        {f"violation_{name}_nanoseconds": "violationTime"},
        "nvmlDeviceGetViolationStatus",
        handle,
        policy,
        room=source.nvml.c_nvmlViolationTime_t(),
        arena=arena,
        stands_for=stands_for,
    )
