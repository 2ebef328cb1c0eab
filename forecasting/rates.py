"""Counters as rates: resets bridged while they are read, growth per minute when they are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.regime import bridge

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(slots=True)
class Total:
    """What a counter has counted since it is followed, over resets. `epoch` is the boot and driver load it counts since."""

    raw: float
    epoch: str
    at_ns: int
    total: float = 0.0

    def take(self, raw: float, epoch: str, at_ns: int) -> float | None:
        """The new total; None for a reading that is not newer than the last.

        In a new epoch the counter began from nothing; in the same one a lower value is a fault and counts nothing.
        """
        if at_ns <= self.at_ns:
            return None
        if epoch != self.epoch:
            self.total += raw if raw < self.raw else raw - self.raw
        elif raw > self.raw:
            self.total += raw - self.raw
        self.raw, self.epoch, self.at_ns = raw, epoch, at_ns
        return self.total


_MOST_GAP: Final = 3
"""Steps without a reading that growth is spread over evenly: what the catalogue's max_age of counters (180 s) allows."""


def per_minute(totals: NDArray[np.float64], step_minutes: float, average_steps: int) -> NDArray[np.float64]:
    """Growth per minute of each step, the mean over `average_steps` that end with it; (n, h) in and out, oldest first.

    NaN where either end is not known, or the count is lower than before.
    """
    out = np.full(totals.shape, np.nan)
    totals, _ = bridge(totals, _MOST_GAP)
    if totals.shape[1] > average_steps:
        grown = totals[:, average_steps:] - totals[:, :-average_steps]
        out[:, average_steps:] = np.where(grown >= 0, grown, np.nan) / (average_steps * step_minutes)
    return out
