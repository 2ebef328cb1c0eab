"""Asks NVML for process lists and utilisation samples, through the session and bindings of collectors.nvidia.source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from collectors.nvidia.reply import Failed

Use = Literal["compute", "graphics", "mps"]
Layout = Literal["_v3", "_v2"]

SUCCESS: Final = 0
INVALID_ARGUMENT: Final = 2
NOT_FOUND: Final = 6
INSUFFICIENT_SIZE: Final = 7
FUNCTION_NOT_FOUND: Final = 13
NO_INSTANCE: Final = 0xFFFFFFFF
NO_VALUE: Final = 0xFFFFFFFFFFFFFFFF

_CALL: Final[dict[Use, str]] = {
    "compute": "nvmlDeviceGetComputeRunningProcesses",
    "graphics": "nvmlDeviceGetGraphicsRunningProcesses",
    "mps": "nvmlDeviceGetMPSComputeRunningProcesses",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a process list. `memory_bytes` None where NVML has no figure; instances None outside MIG."""

    pid: int
    memory_bytes: int | None
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """What a process did in one short window of the driver, percent; `at_microseconds` is the driver's time, UTC."""

    pid: int
    at_microseconds: int
    sm: int
    memory: int
    encoder: int
    decoder: int


class Session(Protocol):
    """What is needed of collectors.nvidia.source.Source: the bindings' module, and a call that gives Failed instead of raising."""

    @property
    def nvml(self) -> Any: ...

    def ask(self, call: Callable[..., Any], *arguments: Any) -> Any: ...


class ProcessCalls:
    """Each call gives a list or a Failed. `slowest_seconds` is the longest driver call since the caller set it to 0."""

    def __init__(self, session: Session, clock: Callable[[], float]) -> None:
        self._session, self._clock = session, clock
        self.slowest_seconds = 0.0

    def listed(self, handle: Any, use: Use, layout: Layout) -> list[Entry] | Failed:
        """Processes of one use. The count may grow between the two calls of the protocol; then it is asked once more."""
        call = getattr(self._session.nvml, _CALL[use] + layout)
        answer = self._ask(call, handle)
        if answer == Failed(INSUFFICIENT_SIZE):
            answer = self._ask(call, handle)
        return answer if isinstance(answer, Failed) else [_entry(line) for line in answer]

    def activity(self, handle: Any, since_microseconds: int, *, newer: bool) -> list[Activity] | Failed:
        """Samples after a time; an empty list where no process did anything. `newer` is the call of driver 550 (Blackwell needs it)."""
        nvml = self._session.nvml
        call = nvml.nvmlDeviceGetProcessesUtilizationInfo if newer else nvml.nvmlDeviceGetProcessUtilization
        answer = self._ask(call, handle, since_microseconds)
        if isinstance(answer, Failed):
            # The bindings raise even a success where there is nothing.
            return [] if answer.code in (SUCCESS, NOT_FOUND) else answer
        return [Activity(s.pid, s.timeStamp, s.smUtil, s.memUtil, s.encUtil, s.decUtil) for s in answer]

    def _ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        started = self._clock()
        answer = self._session.ask(call, *arguments)
        self.slowest_seconds = max(self.slowest_seconds, self._clock() - started)
        return answer


def _entry(line: Any) -> Entry:
    memory, gpu, compute = line.usedGpuMemory, line.gpuInstanceId, line.computeInstanceId
    return Entry(
        pid=line.pid,
        memory_bytes=None if memory is None or memory == NO_VALUE else memory,
        gpu_instance=None if gpu == NO_INSTANCE else gpu,
        compute_instance=None if compute == NO_INSTANCE else compute,
    )
