"""What is usual: running mean and standard deviation of each series at three time constants, from values clipped to what was before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly.places import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.places import Where
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
TINY: Final = 1e-140
"""And in the unit of the series."""
_MOST: Final = 1e12
_K: Final = len(WEIGHTS)
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
    table.define("anomaly_usual", np.float64, 0.0, width, 2 * _K)


def take(table: Table, at: Where, values: Floats, number: NDArray[np.int64]) -> Usual:
    """Takes `values` (m,) in."""
    state = table["anomaly_usual"].reshape(-1, 2 * _K)
    old = rows(state, at).T.copy()
    mean, variance = old[:_K], old[_K:]
    least_number = int(number.min())
    if least_number == 0:
        mean[:, number == 0] = values[number == 0]
    away = values - mean
    least = np.maximum(np.abs(mean) * LEAST_SIGMA, TINY)
    sigma = np.maximum(np.sqrt(variance), least)
    distance = np.minimum(np.maximum(away / sigma, -_MOST), _MOST)
    clip = sigma * WINSOR_SIGMAS
    # where nothing ever varied there is no scale to clip to: the first change sets it
    whole = variance == 0.0
    if least_number < YOUNG:
        whole |= number < YOUNG
    if whole.any():
        clip[whole] = np.inf
    away = np.minimum(np.maximum(away, -clip), clip)
    weight = np.maximum(_WEIGHT, 1.0 / (number + 1.0)) if least_number < 1.0 / WEIGHTS[-1] else _WEIGHT
    step = weight * away
    after = np.empty_like(old)
    np.add(mean, step, out=after[:_K])
    np.multiply(1.0 - weight, variance + step * away, out=after[_K:])
    state[at] = after.T
    return Usual(mean, sigma, distance, after[:_K], np.maximum(np.sqrt(after[_K:]), least))
