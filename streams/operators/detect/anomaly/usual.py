"""What is usual: running mean and standard deviation of each series at three time constants, from values clipped to what was before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

WEIGHTS: Final = (0.1, 0.03, 0.01)
"""Of the newest point: memories of about 10, 30 and 100 points."""
WINSOR_SIGMAS: Final = 4.0
"""A value further off is taken in as if it were this far: an outlier does not widen what is usual by its own size."""
YOUNG: Final = 20
"""Points of a series that are taken in whole: there is no scale to clip to yet."""
LEAST_SIGMA: Final = 1e-9
"""Least standard deviation as a share of the mean: above the rounding of a double, below what any sensor tells apart."""
_TINY: Final = 1e-140
_MOST: Final = 1e12
_WEIGHT: Final = np.array(WEIGHTS)[:, None]


class Usual(NamedTuple):
    """Of m points at the three time constants, (3, m). `mean` and `sigma` are from before the point, `distance` is in sigmas, signed."""

    mean: Floats
    sigma: Floats
    distance: Floats
    mean_after: Floats
    sigma_after: Floats


def define(table: Table, width: int) -> None:
    """Mean and variance at each time constant."""
    table.define("anomaly_usual", np.float64, 0.0, width, 2 * len(WEIGHTS))


def take(table: Table, cells: NDArray[np.intp], values: Floats, number: NDArray[np.int64]) -> Usual:
    """Takes `values` (m,) in."""
    state = table["anomaly_usual"].reshape(-1, 2 * len(WEIGHTS))
    old = state[cells].T
    mean, variance = old[: len(WEIGHTS)], old[len(WEIGHTS) :]
    away = np.where(number == 0, 0.0, values - mean)
    least = np.maximum(LEAST_SIGMA * np.abs(mean), _TINY)
    sigma = np.maximum(np.sqrt(variance), least)
    distance = np.clip(away / sigma, -_MOST, _MOST)
    # where nothing ever varied there is no scale to clip to: the first change sets it
    clip = np.where((number >= YOUNG) & (variance > 0), WINSOR_SIGMAS * sigma, np.inf)
    away = np.clip(away, -clip, clip)
    weight = np.maximum(_WEIGHT, 1.0 / (number + 1.0))
    step = weight * away
    after = np.where(number == 0, values, mean + step)
    spread = (1.0 - weight) * (variance + step * away)
    state[cells] = np.concatenate((after, spread)).T
    return Usual(mean, sigma, distance, after, np.maximum(np.sqrt(spread), least))
