"""How often a costly class of driver calls may be made: twice as rarely each time one was slow, back step by step when they are quick.

Pure: times are seconds of any clock that only goes forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Change = Literal["backed_off", "recovered"]

QUICK_ROUNDS: Final = 3
"""So many quick rounds in a row halve the interval again: half of it at once would swing with a driver that is slow now and then."""

_SLACK: Final = 0.05
"""Part of the interval that a round may come early: ticks are not exact, and a round missed by a millisecond would wait a whole tick."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`slow_seconds` is the longest one call may take; `longest_seconds` the longest distance between two rounds."""

    interval_seconds: float
    slow_seconds: float = 0.05
    longest_seconds: float = 300.0


class Pace:
    """When one class of calls is due. `rounds`, `slow_rounds` and `put_off` count since the start."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.interval_seconds = limits.interval_seconds
        self.rounds = self.slow_rounds = self.put_off = 0
        self._quick = 0
        self._next_at: float | None = None
        self._base_at: float | None = None

    def due(self, at: float) -> bool:
        """Whether a round may be made now. What would be due but for the back-off is counted in `put_off`."""
        if self._next_at is None or at >= self._next_at - _SLACK * self.interval_seconds:
            return True
        base = self._limits.interval_seconds
        if self._base_at is not None and self.backed_off and at >= self._base_at - _SLACK * base:
            self.put_off += 1
            self._base_at = at + base
        return False

    @property
    def backed_off(self) -> bool:
        return self.interval_seconds > self._limits.interval_seconds

    def done(self, at: float, slowest_seconds: float) -> Change | None:
        """A round was made; `slowest_seconds` is its slowest call. Says when the pace leaves the wanted one, and when it is back."""
        limits = self._limits
        was = self.backed_off
        self.rounds += 1
        if slowest_seconds > limits.slow_seconds:
            self.slow_rounds += 1
            self._quick = 0
            self.interval_seconds = min(2 * self.interval_seconds, max(limits.longest_seconds, limits.interval_seconds))
        elif was:
            self._quick += 1
            if self._quick >= QUICK_ROUNDS:
                self._quick = 0
                self.interval_seconds = max(self.interval_seconds / 2, limits.interval_seconds)
        self._next_at = at + self.interval_seconds
        self._base_at = at + limits.interval_seconds
        if self.backed_off == was:
            return None
        return "backed_off" if self.backed_off else "recovered"
