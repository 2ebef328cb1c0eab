"""The constants of the anomaly ensemble, one set for every series; the defaults are what is shipped and what the benchmark measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """`point_seconds`: a point is the mean of what came in that time. `warm_up`: points of a series before it is scored.

    `hold_points`: after a score, only a higher one is news for so many points; the lasting score falls to 0 over them.
    `forget_gap_points`: a series that says nothing for so many of its usual point distances starts again, as does one whose clock is set
    back by as much. `seasonal`: whether the hour of the day is looked at as well; it takes 0.6 KiB a series.
    """

    point_seconds: float = 10.0
    warm_up: int = 150
    hold_points: int = 100
    forget_gap_points: int = 1000
    seasonal: bool = True
