"""Which counters grow towards their limit: events that keep coming, not one burst, at a pace that would get there in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_LEAST_EVENTS: Final = 5.0
"""Fewer are chance: the 90 % interval of a Poisson rate of five is 2 to 10.5."""

_LEAST_MOVES: Final = 3
"""In so many different steps: a burst is one event of many counts."""

_LEAST_RECENT: Final = 0.4
"""The later half must bring at least this share of the earlier half's pace: what has stopped does not go on."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What of a counter's question matters, for m of its rows: (m,) each, and the numbers of the question."""

    distance: NDArray[np.float64]
    fastest: NDArray[np.float64]
    resolution: NDArray[np.float64]
    horizon: float
    reach: float


def since_reset(y: NDArray[np.float64]) -> NDArray[np.int64]:
    """(n,): the column from which each counter of `y` (n, h; NaN before it is known) only grows: a fall is a reset."""
    fell = np.diff(y, axis=1, prepend=np.nan) < 0
    out: NDArray[np.int64] = np.where(fell, np.arange(y.shape[1]), 0).max(axis=1, initial=0)
    return out


def growing(y: NDArray[np.float64], length: NDArray[np.int64], asked: Growth, windows: Iterable[int]) -> NDArray[np.int64]:
    """(m,): the longest steady one of `windows` in which each of `y` (m, h) grows fast enough to reach its limit; 0 where none does.

    `length` (m,) is how many of its newest columns count.
    """
    found = np.zeros(len(y), dtype=np.int64)
    for window in windows:
        half, quarter = window // 2, max(2, window // 4)
        newest = y[:, -1]
        total, late = newest - y[:, -window], newest - y[:, -1 - half]
        early_pace = (total - late) / max(1, window - 1 - half)
        pace = np.maximum(total / (window - 1), late / half)
        moves = (np.diff(y[:, -window:], axis=1) > 0).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = asked.distance / pace
            grows = (
                (length >= window)
                & (total >= np.maximum(_LEAST_EVENTS, asked.resolution))
                & (moves >= _LEAST_MOVES)
                & (late / half >= _LEAST_RECENT * early_pace)
                & (newest > y[:, -1 - quarter])
                & (pace < asked.fastest)
                & (steps <= asked.horizon)
                & (steps <= asked.reach * window)
            )
        # One that begins before the growth does says little of its pace.
        found[grows & ((found == 0) | (early_pace >= _LEAST_RECENT * late / half))] = window
    return found
