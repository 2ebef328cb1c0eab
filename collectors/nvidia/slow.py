"""What is asked of a card once a minute: limits, thresholds, PCIe link, errors and repairs, modes, fabric."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final

from collectors.nvidia.calls import Call, number, numbers, structure
from collectors.nvidia.fast import violation
from collectors.nvidia.fields import Field, FieldBatch, slowdown_fields
from collectors.nvidia.reply import Failed, Replies, unsupported
from collectors.nvidia.source import Handle, Source

FIELDS: Final[dict[str, Field]] = {
    "retired_pages_single_bit": 29,
    "retired_pages_double_bit": 30,
    "retired_pages_pending": 31,
    "policy_sync_boost_nanoseconds": 76,
    "policy_board_limit_nanoseconds": 77,
    "policy_low_utilization_nanoseconds": 78,
    "policy_reliability_nanoseconds": 79,
    "pcie_replays": 94,
    "power_default_milliwatts": 189,
    "shutdown_margin_celsius": 193,
    "slowdown_margin_celsius": 194,
    "memory_max_margin_celsius": 195,
    "operating_max_margin_celsius": 196,
    "reset_wanted": 226,
    "drain_and_reset_wanted": 227,
    "recovery_action": 230,
}
_POLICIES: Final = {"sync_boost": 2, "board_limit": 3, "low_utilization": 4, "reliability": 5}
"""nvmlPerfPolicyType_t."""
_THRESHOLDS: Final = {"shutdown": 0, "slowdown": 1, "memory_max": 2, "operating_max": 3}
"""nvmlTemperatureThresholds_t."""
_LOCATIONS: Final = {"dram": 2, "sram": 7}
"""nvmlMemoryLocation_t; boards before Ampere have no sum over their on-chip memories."""


class SlowCalls:
    """The calls of one card in one session. `pcie_window`: may it measure PCIe for 20 ms where the card has no byte counters."""

    def __init__(self, source: Source, handle: Handle, driver_version: str, *, pcie_window: bool = True) -> None:
        self._source, self._handle, self._pcie_window = source, handle, pcie_window
        self._calls = tuple(_calls(source, handle))
        self._fields = FieldBatch(source, handle, FIELDS | slowdown_fields(driver_version))

    def read(self, *, counts_pcie_bytes: bool) -> Replies:
        """A reply by name. `counts_pcie_bytes` says that the fast tick has PCIe's bytes from counters."""
        replies: Replies = {}
        self._fields.ask(replies)
        for call in self._calls:
            known: Call | None = call if not call.stands_for or unsupported(replies[call.stands_for]) else None
            while known is not None:
                known.run(replies)
                known = known.otherwise if unsupported(replies[known.name]) else None
        if unsupported(replies["retired_pages_single_bit"]) and unsupported(replies["remapped_rows_correctable"]):
            replies |= self._retired_pages()
        if self._pcie_window and not counts_pcie_bytes:
            for name, direction in (("tx", 0), ("rx", 1)):
                replies[f"pcie_{name}_kilobytes_per_second"] = self._source.ask(
                    self._source.nvml.nvmlDeviceGetPcieThroughput, self._handle, direction
                )
        return replies

    def _retired_pages(self) -> Replies:
        n, ask = self._source.nvml, self._source.ask
        replies: Replies = {}
        for name, cause in (("single_bit", 0), ("double_bit", 1)):
            pages = ask(n.nvmlDeviceGetRetiredPages, self._handle, cause)
            replies[f"retired_pages_{name}"] = pages if isinstance(pages, Failed) else len(pages)
        replies["retired_pages_pending"] = ask(n.nvmlDeviceGetRetiredPagesPendingStatus, self._handle)
        return replies


def _calls(source: Source, handle: Handle) -> Iterator[Call]:
    n = source.nvml

    def plain(name: str, symbol: str, *arguments: Any, **more: Any) -> Call:
        return number(source, name, symbol, handle, *arguments, **more)

    yield plain("power_limit_milliwatts", "nvmlDeviceGetEnforcedPowerLimit")
    limits = ("power_limit_min_milliwatts", "power_limit_max_milliwatts")
    yield numbers(source, limits, "nvmlDeviceGetPowerManagementLimitConstraints", handle)
    yield plain("power_default_milliwatts", "nvmlDeviceGetPowerManagementDefaultLimit", stands_for="power_default_milliwatts")
    for name, domain in (("graphics", n.NVML_CLOCK_GRAPHICS), ("video", n.NVML_CLOCK_VIDEO)):
        yield plain(f"{name}_clock_megahertz", "nvmlDeviceGetClockInfo", domain)
        yield plain(f"{name}_clock_max_megahertz", "nvmlDeviceGetMaxClockInfo", domain)
    yield plain("sm_clock_max_megahertz", "nvmlDeviceGetMaxClockInfo", n.NVML_CLOCK_SM)
    yield plain("memory_clock_max_megahertz", "nvmlDeviceGetMaxClockInfo", n.NVML_CLOCK_MEM)
    yield plain("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration")
    yield plain("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration")
    yield plain("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth")
    yield plain("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth")
    yield plain("pcie_replays_call", "nvmlDeviceGetPcieReplayCounter", stands_for="pcie_replays")
    for name, which in _THRESHOLDS.items():
        yield plain(f"{name}_celsius", "nvmlDeviceGetTemperatureThreshold", which)
    for name, policy in _POLICIES.items():
        yield violation(source, handle, name, policy, stands_for=f"policy_{name}_nanoseconds")
    yield from _errors(source, handle)
    yield plain("persistence_mode", "nvmlDeviceGetPersistenceMode")
    yield plain("compute_mode", "nvmlDeviceGetComputeMode")
    yield plain("accounting_mode", "nvmlDeviceGetAccountingMode")
    yield numbers(source, ("ecc_mode", ""), "nvmlDeviceGetEccMode", handle)
    yield numbers(source, ("mig_mode", "mig_mode_pending"), "nvmlDeviceGetMigMode", handle)
    bar1 = {"bar1_total_bytes": "bar1Total", "bar1_used_bytes": "bar1Used"}
    yield structure(source, bar1, "nvmlDeviceGetBAR1MemoryInfo", handle, room=n.c_nvmlBAR1Memory_t())
    yield fabric(source, handle)


def _errors(source: Source, handle: Handle) -> Iterator[Call]:
    n, wide = source.nvml, ctypes.c_ulonglong
    for kind, error in (("corrected", 0), ("uncorrected", 1)):
        for counter, which in (("volatile", 0), ("aggregate", 1)):
            yield number(source, f"ecc_{kind}_{counter}", "nvmlDeviceGetTotalEccErrors", handle, error, which, room=wide)
            for place, location in _LOCATIONS.items():
                name = f"ecc_{kind}_{place}_{counter}"
                yield number(source, name, "nvmlDeviceGetMemoryErrorCounter", handle, error, which, location, room=wide)
    sram = {
        "sram_threshold_exceeded": "bThresholdExceeded",
        "sram_corrected_volatile": "volatileCor",
        "sram_parity_volatile": "volatileUncParity",
        "sram_secded_volatile": "volatileUncSecDed",
        "sram_corrected_aggregate": "aggregateCor",
        "sram_parity_aggregate": "aggregateUncParity",
        "sram_secded_aggregate": "aggregateUncSecDed",
    }
    yield structure(source, sram, "nvmlDeviceGetSramEccErrorStatus", handle, room=n.c_nvmlEccSramErrorStatus_v1_t())
    rows = tuple(f"remapped_rows_{name}" for name in ("correctable", "uncorrectable", "pending", "failed"))
    yield numbers(source, rows, "nvmlDeviceGetRemappedRows", handle)
    banks = {"remapped_row_banks_low": "low", "remapped_row_banks_exhausted": "none"}
    yield structure(source, banks, "nvmlDeviceGetRowRemapperHistogram", handle, room=n.c_nvmlRowRemapperHistogramValues())


def fabric(source: Source, handle: Handle) -> Call:
    """The fabric's state, and its health where the driver knows a later version of the struct (535 does not: gpud issue 1183)."""
    n = source.nvml
    members = {"fabric_state": "state", "fabric_status": "status", "fabric_clique": "cliqueId", "fabric_cluster": "clusterUuid"}
    health = members | {"fabric_health": "healthMask"}
    first = structure(source, members, "nvmlDeviceGetGpuFabricInfo", handle, room=n.c_nvmlGpuFabricInfo_t())
    symbol = "nvmlDeviceGetGpuFabricInfoV"
    second = structure(source, health, symbol, handle, room=n.c_nvmlGpuFabricInfo_v2_t(), otherwise=first)
    return structure(source, health, symbol, handle, room=n.c_nvmlGpuFabricInfo_v3_t(), otherwise=second)
