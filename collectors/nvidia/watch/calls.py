"""Asks NVML for its event sets, through the session and bindings of collectors.nvidia.source."""

from __future__ import annotations

import ctypes
from typing import Any, Final, NamedTuple

from collectors.nvidia.processes.calls import NO_INSTANCE, Session
from collectors.nvidia.reply import Failed

TIMEOUT: Final = 10


class Told(NamedTuple):
    """An event as NVML gives it; `handle` is the address of the device's handle, the instances are None outside MIG."""

    handle: int
    type: int
    data: int
    gpu_instance: int | None
    compute_instance: int | None


class EventCalls:
    """Each call gives an answer or a Failed."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def create(self) -> Any:
        return self._session.ask(self._session.nvml.nvmlEventSetCreate)

    def free(self, events: Any) -> None:
        """What cannot be freed is gone with its session."""
        self._session.ask(self._session.nvml.nvmlEventSetFree, events)

    def supported(self, handle: Any) -> int | Failed:
        """Bits of the types that the card can report."""
        answer = self._session.ask(self._session.nvml.nvmlDeviceGetSupportedEventTypes, handle)
        return answer if isinstance(answer, Failed) else int(answer)

    def register(self, handle: Any, types: int, events: Any) -> Failed | None:
        answer = self._session.ask(self._session.nvml.nvmlDeviceRegisterEvents, handle, types, events)
        return answer if isinstance(answer, Failed) else None

    def next(self, events: Any) -> Told | Failed:
        """The next event of the set, Failed(TIMEOUT) where there is none; never waits."""
        answer = self._session.ask(self._session.nvml.nvmlEventSetWait_v2, events, 0)
        if isinstance(answer, Failed):
            return answer
        gpu, compute = (None if one == NO_INSTANCE else one for one in (answer.gpuInstanceId, answer.computeInstanceId))
        return Told(address(answer.device), answer.eventType, answer.eventData, gpu, compute)


def address(handle: Any) -> int:
    """What tells two handles apart: NVML gives the same pointer for the same device within a session."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
