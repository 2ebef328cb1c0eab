"""A signal: the first asks, the second ends it."""

from __future__ import annotations

import signal
from types import FrameType


class Signalled:
    """Installs a handler of `number` (SIGUSR2) in the main thread; each signal turns the request over."""

    def __init__(self, number: int = signal.SIGUSR2) -> None:
        self._name = signal.Signals(number).name
        self._asked = False
        signal.signal(number, self._turn)

    def _turn(self, number: int, frame: FrameType | None) -> None:
        self._asked = not self._asked

    def __call__(self) -> str:
        return f"{self._name}; send it again to end it" if self._asked else ""
