"""Which of the ticks that are due for the slow fields read them: fewer where the driver takes long for them."""

from __future__ import annotations

from typing import Final

from collectors.nvidia.watch.budget import Change, Limits, Pace

_LONGEST_TICKS: Final = 8
"""At the usual minute from tick to tick a value is then 8 minutes old, and consumers have called it stale: that is the truth."""


class SlowReads:
    """Counts in due ticks, whatever time lies between two of them: the back-off follows the agent's slow interval.

    `limit_seconds` is what the read of all cards may take, slow fields included.
    """

    def __init__(self, limit_seconds: float) -> None:
        self.limit_seconds = limit_seconds
        self._pace = Pace(Limits(interval_seconds=1.0, slow_seconds=limit_seconds, longest_seconds=float(_LONGEST_TICKS)))
        self._ticks = 0

    @property
    def every(self) -> int:
        """Of how many due ticks one reads."""
        return round(self._pace.interval_seconds)

    def wanted(self) -> bool:
        """A tick is due; whether it is to read."""
        self._ticks += 1
        return self._pace.due(float(self._ticks))

    def done(self, seconds: float) -> Change | None:
        """The tick has read all cards, which took so long. Says when that leaves the wanted pace, and when it is back."""
        return self._pace.done(float(self._ticks), seconds)
