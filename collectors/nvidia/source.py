"""Asks NVML through nvidia-ml-py, the only module that imports it: vendor units and return codes come out, nothing is understood here.

Field ids are nvml.h's NVML_FI_DEV_*. The ids 251-253 and 269-271 (thermal and power-brake time) moved between header versions, so the
same number means another thing to another driver: they are not used; 74 and 75 never moved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from collectors.nvidia.remedy import Missing, bindings_warning, why
from collectors.nvidia.reply import NOT_SUPPORTED, UNKNOWN, Failed, Replies, Reply, field_value, text, total

Handle = Any
"""NVML's opaque device handle."""

_ALL_LINKS: Final = 0xFFFFFFFF
_FAST_FIELDS: Final = {
    "memory_temperature_celsius": 82,
    "energy_millijoules": 83,
    "power_instant_milliwatts": 186,
    "pcie_tx_bytes": 197,
    "pcie_rx_bytes": 198,
    "nvlink_tx_kibibytes": (138, _ALL_LINKS),
    "nvlink_rx_kibibytes": (139, _ALL_LINKS),
    "nvlink_tx_bytes": (202, _ALL_LINKS),
    "nvlink_rx_bytes": (204, _ALL_LINKS),
    "policy_power_nanoseconds": 74,
    "policy_thermal_nanoseconds": 75,
}
_SLOW_FIELDS: Final = {"pcie_replays": 94, "nvlink_links": 91, "shutdown_margin_celsius": 193, "slowdown_margin_celsius": 194}
_GPM: Final = {"sm_active_percent": 2, "tensor_active_percent": 5, "dram_active_percent": 10, "pcie_tx_mib_s": 20, "pcie_rx_mib_s": 21}
_LINK_ERRORS: Final = (0, 1, 2, 3)
"""nvmlNvLinkErrorCounter_t: replay, recovery, CRC of flits, CRC of data."""


class Source:
    """One NVML session. Each call that asks several things gives a reply or a Failed for every one of them."""

    def __init__(self) -> None:
        self._nvml: ModuleType | None = None
        self._open = False
        self._gpm: dict[str, list[Any]] = {}

    def open(self) -> None:
        """Load the library and start a session; raises Missing."""
        if self._nvml is None:
            self._nvml = _bindings()
        if self._open:
            return
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise Missing(why(error.value, str(error))) from None
        self._open = True

    def close(self) -> None:
        if not self._open or self._nvml is None:
            return
        for pair in self._gpm.values():
            for sample in pair:
                self.ask(self._nvml.nvmlGpmSampleFree, sample)
        self._gpm = {}
        self._open = False
        self.ask(self._nvml.nvmlShutdown)

    def ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The call's answer, or Failed."""
        assert self._nvml is not None
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            return Failed(error.value)
        except UnicodeDecodeError:
            return Failed(UNKNOWN)

    def driver_version(self) -> Reply:
        return self._text(self._n.nvmlSystemGetDriverVersion)

    def handles(self) -> list[Handle | Failed]:
        """A handle or the reason for none, by NVML index; raises Missing where even the count cannot be had."""
        count = self.ask(self._n.nvmlDeviceGetCount)
        if isinstance(count, Failed):
            raise Missing(why(count.code, "nvmlDeviceGetCount"))
        return [self.ask(self._n.nvmlDeviceGetHandleByIndex, index) for index in range(count)]

    def identity(self, handle: Handle) -> Replies:
        """What does not change while the driver is loaded."""
        n = self._n
        pci = self.ask(n.nvmlDeviceGetPciInfo_v3, handle)
        limits = self.ask(n.nvmlDeviceGetPowerManagementLimitConstraints, handle)
        return {
            "uuid": self._text(n.nvmlDeviceGetUUID, handle),
            "name": self._text(n.nvmlDeviceGetName, handle),
            "serial": self._text(n.nvmlDeviceGetSerial, handle),
            "vbios": self._text(n.nvmlDeviceGetVbiosVersion, handle),
            "board_part": self._text(n.nvmlDeviceGetBoardPartNumber, handle),
            "bdf": pci if isinstance(pci, Failed) else text(pci.busId),
            "module": self.ask(n.nvmlDeviceGetModuleId, handle),
            "power_limit_max_milliwatts": limits if isinstance(limits, Failed) else limits[1],
        }

    def fast(self, handle: Handle, skip: frozenset[str] = frozenset()) -> Replies:
        """What is due each tick: one batch of field values and a few calls. What is in `skip` answers not supported without a call."""
        n = self._n
        replies = self._fields(handle, _FAST_FIELDS)
        memory = self.ask(n.nvmlDeviceGetMemoryInfo, handle, n.nvmlMemory_v2)
        for name in ("used", "total", "reserved"):
            replies[f"memory_{name}_bytes"] = memory if isinstance(memory, Failed) else getattr(memory, name)
        calls: dict[str, tuple[Any, ...]] = {
            "utilization_percent": (self._utilization, handle),
            "temperature_celsius": (self._temperature, handle),
            "sm_clock_megahertz": (n.nvmlDeviceGetClockInfo, handle, n.NVML_CLOCK_SM),
            "memory_clock_megahertz": (n.nvmlDeviceGetClockInfo, handle, n.NVML_CLOCK_MEM),
            "clock_reasons": (self._clock_reasons, handle),
            "fan_percent": (n.nvmlDeviceGetFanSpeed, handle),
            "performance_state": (n.nvmlDeviceGetPerformanceState, handle),
        }
        if isinstance(replies["power_instant_milliwatts"], Failed):
            calls["power_milliwatts"] = (n.nvmlDeviceGetPowerUsage, handle)
        if isinstance(replies["energy_millijoules"], Failed):
            calls["energy_total_millijoules"] = (n.nvmlDeviceGetTotalEnergyConsumption, handle)
        for name, policy in (("power", 0), ("thermal", 1)):
            if isinstance(replies[f"policy_{name}_nanoseconds"], Failed):
                calls[f"violation_{name}_nanoseconds"] = (self._violation, handle, policy)
        for name, (call, *arguments) in calls.items():
            replies[name] = Failed(NOT_SUPPORTED) if name in skip else self.ask(call, *arguments)
        return replies

    def slow(self, handle: Handle, *, link_errors: bool = True) -> Replies:
        """Limits, link, ECC and repair state."""
        n = self._n
        replies = self._fields(handle, _SLOW_FIELDS)
        calls: dict[str, tuple[Any, ...]] = {
            "power_limit_milliwatts": (n.nvmlDeviceGetEnforcedPowerLimit, handle),
            "sm_clock_max_megahertz": (n.nvmlDeviceGetMaxClockInfo, handle, n.NVML_CLOCK_SM),
            "memory_clock_max_megahertz": (n.nvmlDeviceGetMaxClockInfo, handle, n.NVML_CLOCK_MEM),
            "pcie_generation": (n.nvmlDeviceGetCurrPcieLinkGeneration, handle),
            "pcie_generation_max": (n.nvmlDeviceGetMaxPcieLinkGeneration, handle),
            "pcie_width": (n.nvmlDeviceGetCurrPcieLinkWidth, handle),
            "pcie_width_max": (n.nvmlDeviceGetMaxPcieLinkWidth, handle),
            "pcie_replays_call": (n.nvmlDeviceGetPcieReplayCounter, handle),
            "margin_celsius": (n.nvmlDeviceGetMarginTemperature, handle),
            "shutdown_celsius": (n.nvmlDeviceGetTemperatureThreshold, handle, n.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
            "slowdown_celsius": (n.nvmlDeviceGetTemperatureThreshold, handle, n.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        }
        for kind, error in (("corrected", 0), ("uncorrected", 1)):
            for counter, number in (("volatile", 0), ("aggregate", 1)):
                calls[f"ecc_{kind}_{counter}"] = (n.nvmlDeviceGetTotalEccErrors, handle, error, number)
        for name, (call, *arguments) in calls.items():
            replies[name] = self.ask(call, *arguments)
        rows = self.ask(n.nvmlDeviceGetRemappedRows, handle)
        for i, name in enumerate(("correctable", "uncorrectable", "pending", "failed")):
            replies[f"remapped_rows_{name}"] = rows if isinstance(rows, Failed) else rows[i]
        replies |= self._links(handle, replies["nvlink_links"]) if link_errors else {}
        return replies

    def mig_enabled(self, handle: Handle) -> bool:
        """Whether the device is cut into MIG instances; a card that knows no MIG is not."""
        mode = self.ask(self._n.nvmlDeviceGetMigMode, handle)
        return not isinstance(mode, Failed) and mode[0] == 1

    def profiled(self, handle: Handle) -> bool:
        """Whether the device has GPM (Hopper and newer, not under MIG)."""
        support = self.ask(self._n.nvmlGpmQueryDeviceSupport, handle)
        return not isinstance(support, Failed) and bool(support.isSupportedDevice)

    def profile(self, handle: Handle, key: str) -> Replies:
        """Activity since the last call under this key; empty at the first, which has nothing to compare with."""
        n = self._n
        pair = self._gpm.setdefault(key, [])
        new = pair.pop(0) if len(pair) == 2 else self.ask(n.nvmlGpmSampleAlloc)
        if isinstance(new, Failed):
            return dict.fromkeys(_GPM, new)
        taken = self.ask(n.nvmlGpmSampleGet, handle, new)
        if isinstance(taken, Failed):
            self.ask(n.nvmlGpmSampleFree, new)
            return dict.fromkeys(_GPM, taken)
        pair.append(new)
        if len(pair) < 2:
            return {}
        query = n.c_nvmlGpmMetricsGet_t()
        query.version, query.numMetrics = n.NVML_GPM_METRICS_GET_VERSION, len(_GPM)
        query.sample1, query.sample2 = pair
        for i, number in enumerate(_GPM.values()):
            query.metrics[i].metricId = number
        got = self.ask(n.nvmlGpmMetricsGet, query)
        if isinstance(got, Failed):
            return dict.fromkeys(_GPM, got)
        values = (query.metrics[i] for i in range(len(_GPM)))
        return {name: value.value if value.nvmlReturn == 0 else Failed(value.nvmlReturn) for name, value in zip(_GPM, values, strict=True)}

    @property
    def _n(self) -> Any:
        assert self._nvml is not None, "open() first"
        return self._nvml

    def _text(self, call: Callable[..., Any], *arguments: Any) -> Reply:
        answer = self.ask(call, *arguments)
        return answer if isinstance(answer, Failed) else text(answer)

    def _fields(self, handle: Handle, fields: dict[str, Any]) -> Replies:
        values = self.ask(self._n.nvmlDeviceGetFieldValues, handle, list(fields.values()))
        if isinstance(values, Failed):
            return dict.fromkeys(fields, values)
        return {name: field_value(value) for name, value in zip(fields, values, strict=True)}

    def _utilization(self, handle: Handle) -> int:
        return int(self._n.nvmlDeviceGetUtilizationRates(handle).gpu)

    def _temperature(self, handle: Handle) -> int:
        try:
            return int(self._n.nvmlDeviceGetTemperatureV(handle, self._n.NVML_TEMPERATURE_GPU))
        except (self._n.NVMLError_FunctionNotFound, self._n.NVMLError_ArgumentVersionMismatch):
            return int(self._n.nvmlDeviceGetTemperature(handle, self._n.NVML_TEMPERATURE_GPU))

    def _clock_reasons(self, handle: Handle) -> int:
        try:
            return int(self._n.nvmlDeviceGetCurrentClocksEventReasons(handle))
        except self._n.NVMLError_FunctionNotFound:  # the name before driver 535
            return int(self._n.nvmlDeviceGetCurrentClocksThrottleReasons(handle))

    def _violation(self, handle: Handle, policy: int) -> int:
        return int(self._n.nvmlDeviceGetViolationStatus(handle, policy).violationTime)

    def _links(self, handle: Handle, count: Reply) -> Replies:
        """Links that are up, and the sum of their error counters; a count that lacks a link's share is none."""
        if isinstance(count, Failed) or not isinstance(count, int) or count == 0:
            failed = count if isinstance(count, Failed) else Failed(NOT_SUPPORTED)
            return {"links_active": failed, "link_errors": failed}
        states = [self.ask(self._n.nvmlDeviceGetNvLinkState, handle, link) for link in range(count)]
        broken = next((state for state in states if isinstance(state, Failed) and state.code != NOT_SUPPORTED), None)
        if broken is not None:
            return {"links_active": broken, "link_errors": broken}
        active = [link for link, state in enumerate(states) if state == 1]
        counters = [self.ask(self._n.nvmlDeviceGetNvLinkErrorCounter, handle, link, kind) for link in range(count) for kind in _LINK_ERRORS]
        return {"links_active": len(active), "link_errors": total(counters)}


def _bindings() -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # pynvml 13's redirector warns in nvidia-ml-py's name
            import pynvml
    except ImportError as error:
        raise Missing(f"the bindings of NVML are not installed ({error}); install them: pip install 'xpulse[agent]'") from None
    if hasattr(pynvml, "__path__") or not hasattr(pynvml, "nvmlGpmSampleGet"):
        other = f"the module pynvml at {pynvml.__file__} is not nvidia-ml-py 13; install it: pip install 'nvidia-ml-py>=13.580'"
        raise Missing(bindings_warning() or other)
    return pynvml  # type: ignore[no-any-return]  # the module is untyped
