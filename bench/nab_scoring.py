"""The scoring of the Numenta Anomaly Benchmark, from its published formula: windows, early and false detections, the best threshold.

Each labelled window counts once, by its earliest detection: from 1 at its start to 0 at its end, along a scaled sigmoid. Each detection
outside of a window costs, less where it is soon after one. A window without any costs one miss. The first 15 % of a series, at most
750 points, are not scored. 0 is what detecting nothing scores, 100 what is perfect. One threshold holds for all series, and it is the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PROBATION_SHARE: Final = 0.15
PROBATION_MOST: Final = 5000
"""Points of a series of which that share is taken at most."""
_STEEPNESS: Final = 5.0
_FAR: Final = 3.0
"""Window lengths behind a window from which a false detection costs all."""


class Profile(NamedTuple):
    """What a hit earns, what a miss costs, and what a false detection costs."""

    hit: float
    miss: float
    false: float


class Labelled(NamedTuple):
    """A series of `length` points and its windows, (first, last) point of each, in order."""

    length: int
    windows: Sequence[tuple[int, int]]


def sigmoid(position: Floats) -> Floats:
    """1 far before, 0 at the end of a window (position 0), and -1 from three window lengths behind it."""
    near = 2.0 / (1.0 + np.exp(_STEEPNESS * np.minimum(position, _FAR))) - 1.0
    return np.where(position > _FAR, -1.0, near)


def worth(series: Labelled) -> tuple[Floats, NDArray[np.intp]]:
    """What a detection at each point is worth before weights, (n,), and the number of its window, -1 outside."""
    at = np.arange(series.length)
    value = np.full(series.length, -1.0)
    window = np.full(series.length, -1, np.intp)
    most = float(sigmoid(np.array(-1.0)))
    for first, last in series.windows:
        behind = slice(last + 1, series.length)
        value[behind] = sigmoid((at[behind] - last) / max(last - first, 1))
    for number, (first, last) in enumerate(series.windows):
        inside = slice(first, last + 1)
        value[inside] = sigmoid(-(last - at[inside] + 1) / (last - first + 1)) / most
        window[inside] = number
    return value, window


class Sheet:
    """Scores detectors on a set of series. Anomaly scores are given for all points of all series, one after the other."""

    def __init__(self, series: Sequence[Labelled]) -> None:
        values, windows, scored = [], [], []
        self.windows = 0
        for one in series:
            value, window = worth(one)
            values.append(value)
            windows.append(np.where(window >= 0, window + self.windows, -1))
            scored.append(np.arange(one.length) >= int(PROBATION_SHARE * min(one.length, PROBATION_MOST)))
            self.windows += len(one.windows)
        self._scored = np.flatnonzero(np.concatenate(scored))
        self._value = np.concatenate(values)[self._scored]
        self._window = np.concatenate(windows)[self._scored]

    def curve(self, scores: Floats, profile: Profile) -> tuple[Floats, Floats]:
        """Thresholds from high to low, and the score (0 nothing, 100 perfect) of detecting wherever `scores` reaches each."""
        found = scores[self._scored]
        order = np.argsort(-found, kind="stable")
        found, value, window = found[order], self._value[order], self._window[order]
        gain = np.where(window < 0, value * profile.false, 0.0)
        inside = np.flatnonzero(window >= 0)
        inside = inside[np.argsort(window[inside], kind="stable")]
        starts = np.flatnonzero(np.diff(window[inside], prepend=-1))
        for a, b in zip(starts, np.append(starts[1:], len(inside)), strict=True):
            # going down with the threshold, a window is worth its earliest detection so far
            best = np.maximum.accumulate(value[inside[a:b]] * profile.hit)
            gain[inside[a:b]] = np.diff(best, prepend=-profile.miss)
        total = np.cumsum(gain) - profile.miss * self.windows
        ends = np.append(found[1:] != found[:-1], True)
        return found[ends], self._normal(total[ends], profile)

    def best(self, scores: Floats, profile: Profile) -> tuple[float, float]:
        """The score at the best threshold, and that threshold; 0 and infinity where detecting nothing is best."""
        thresholds, curve = self.curve(scores, profile)
        k = int(curve.argmax())
        return (float(curve[k]), float(thresholds[k])) if curve[k] > 0 else (0.0, float("inf"))

    def at(self, scores: Floats, profile: Profile, threshold: float) -> float:
        """The score at `threshold`."""
        thresholds, curve = self.curve(scores, profile)
        k = int(np.searchsorted(-thresholds, -threshold, side="right")) - 1
        return float(curve[k]) if k >= 0 else 0.0

    def _normal(self, total: Floats, profile: Profile) -> Floats:
        nothing, perfect = -profile.miss * self.windows, profile.hit * self.windows
        if perfect == nothing:
            return np.zeros(len(total))
        return np.asarray(100.0 * (total - nothing) / (perfect - nothing))
