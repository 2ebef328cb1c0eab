"""Passes what the agent hears on to several observers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collectors.contract import Reading
    from collectors.observer import Observer
    from schemas.telemetry import v1


class Several:
    """An observer that is many."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def observe(self, source: str, reading: Reading) -> None:
        for observer in self._observers:
            observer.observe(source, reading)

    def happened(self, event: v1.DeviceEvent) -> None:
        for observer in self._observers:
            observer.happened(event)
