"""Who else hears what the agent hears, beside the bus: pull exporters and other pushes stand behind this protocol."""

from __future__ import annotations

from typing import Protocol

from collectors.contract import Reading
from schemas.telemetry import v1


class Observer(Protocol):
    """Called in the agent's loop, so both return at once and never raise."""

    def observe(self, source: str, reading: Reading) -> None:
        """A finished read of the plugin `source`, after refinement (addresses resolved, doubles dropped)."""

    def happened(self, event: v1.DeviceEvent) -> None:
        """An event, of a plugin or of the agent itself; a later version of one has the same id."""


class Nobody:
    """Hears nothing."""

    def observe(self, source: str, reading: Reading) -> None:
        pass

    def happened(self, event: v1.DeviceEvent) -> None:
        pass
