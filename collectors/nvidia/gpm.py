"""GPM, NVML's activity counters (Hopper and newer): two samples kept per card or GPU instance, and the metrics between them."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Final

from collectors.nvidia.reply import FAILED, NOT_SUPPORTED, Failed, Replies
from collectors.nvidia.source import Handle, Source

METRICS: Final = {
    "graphics_active_percent": 1,
    "sm_active_percent": 2,
    "sm_occupancy_percent": 3,
    "tensor_active_percent": 5,
    "dram_active_percent": 10,
    "fp64_active_percent": 11,
    "fp32_active_percent": 12,
    "fp16_active_percent": 13,
    "pcie_tx_mib_s": 20,
    "pcie_rx_mib_s": 21,
}
"""nvmlGpmMetricId_t."""

_NAMES: Final = tuple(METRICS)
_ANSWERS: Final = struct.Struct("=" + "4xId24x" * len(METRICS))
"""nvmlGpmMetric_t: id, return code, value, three pointers to names and unit."""


def supported(source: Source, handle: Handle) -> bool:
    """Whether the card has GPM."""
    support = source.ask(source.nvml.nvmlGpmQueryDeviceSupport, handle)
    return not isinstance(support, Failed) and bool(support.isSupportedDevice)


class Profiler:
    """Activity of one card, or of one of its GPU instances, between two reads of one session. `close` before the session ends."""

    def __init__(self, source: Source, handle: Handle, gpu_instance_id: int | None = None) -> None:
        self._source = source
        n = source.nvml
        self._take = source.function("nvmlGpmSampleGet" if gpu_instance_id is None else "nvmlGpmMigSampleGet")
        self._of: tuple[Any, ...] = (handle,) if gpu_instance_id is None else (handle, gpu_instance_id)
        self._get = source.function("nvmlGpmMetricsGet")
        self._samples: list[Any] = []
        self._before: tuple[tuple[Any, ...], Replies] = (), {}
        """The last answers and what they were read as: an idle card's are equal for hours. Nobody changes the replies."""
        self._query = n.c_nvmlGpmMetricsGet_t()
        self._query.version, self._query.numMetrics = n.NVML_GPM_METRICS_GET_VERSION, len(METRICS)
        for i, number in enumerate(METRICS.values()):
            self._query.metrics[i].metricId = number
        self._reference = ctypes.byref(self._query)
        first = n.c_nvmlGpmMetricsGet_t.metrics.offset
        self._answers = memoryview(self._query).cast("B")[first : first + _ANSWERS.size]
        kind = n.c_nvmlGpmMetricsGet_t
        self._set_samples = kind.sample1.__set__, kind.sample2.__set__  # past the bindings' own __setattr__

    def read(self) -> Replies:
        """Percent (and MiB/s) since the last read; empty at the first, which has nothing to compare with."""
        samples = self._samples
        new = samples.pop(0) if len(samples) == 2 else self._source.ask(self._source.nvml.nvmlGpmSampleAlloc)
        if isinstance(new, Failed):
            return dict.fromkeys(METRICS, new)
        code = self._take(*self._of, new) if self._take is not None else NOT_SUPPORTED
        if code:
            # The older sample stays: after a failure the next answer covers the time since it.
            self._source.ask(self._source.nvml.nvmlGpmSampleFree, new)
            return dict.fromkeys(METRICS, FAILED[code])
        samples.append(new)
        if len(samples) < 2:
            return {}
        for put, sample in zip(self._set_samples, samples, strict=True):
            put(self._query, sample)
        code = self._get(self._reference) if self._get is not None else NOT_SUPPORTED
        if code:
            return dict.fromkeys(METRICS, FAILED[code])
        answers = _ANSWERS.unpack(self._answers)
        if answers == self._before[0]:
            return self._before[1]
        results, values = answers[0::2], answers[1::2]
        if not any(results):
            self._before = answers, dict(zip(_NAMES, values, strict=True))
            return self._before[1]
        return {name: FAILED[result] if result else value for name, result, value in zip(_NAMES, results, values, strict=True)}

    def close(self) -> None:
        """Free the samples."""
        for sample in self._samples:
            self._source.ask(self._source.nvml.nvmlGpmSampleFree, sample)
        self._samples = []
