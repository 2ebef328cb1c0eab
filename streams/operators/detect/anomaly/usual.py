"""What is usual: running mean and standard deviation of each series at three time constants, from values clipped to what was before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly.places import keep, planes

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
BAND_SIGMAS: Final = 3.0
"""Half width of the expected band."""
_K: Final = len(WEIGHTS)
_SHORT, _MIDDLE, _LONG = range(_K)
_WEIGHT: Final = np.array(WEIGHTS)[:, None]


class Usual(NamedTuple):
    """Of m points. `distance` (3, m) from the means before the point, in sigmas, signed; the others (m,): `moved`, from the long mean
    before the point to the short one with it; `sigma` of the long time constant before, `sigma_after` of the short one with the point;
    `never`, whether the series never varied by more than rounding does; `low` and `high`, the band expected by the middle one."""

    distance: Floats
    moved: Floats
    sigma: Floats
    sigma_after: Floats
    never: NDArray[np.bool_]
    low: Floats
    high: Floats


def define(table: Table, width: int) -> None:
    """Mean and variance at each time constant."""
    table.define_planes("anomaly_usual", np.float64, 0.0, 2 * _K, width)


def take(table: Table, at: Where, values: Floats, number: NDArray[np.int32], youngest: int) -> Usual:
    """Takes `values` (m,) in."""
    state: Floats = planes(table, "anomaly_usual", at)
    mean, variance = state[:_K], state[_K:]
    if youngest == 0:
        new = number == 0
        mean[:, new] = values[new]
    away = values - mean
    sigma = np.sqrt(variance)
    least = np.maximum(np.abs(mean[_MIDDLE]) * LEAST_SIGMA, TINY)
    np.maximum(sigma, least, out=sigma)
    distance = away / sigma
    half = BAND_SIGMAS * sigma[_MIDDLE]
    low, high = mean[_MIDDLE] - half, mean[_MIDDLE] + half
    moved = mean[_SHORT] - mean[_LONG]

    clipped = np.minimum(np.maximum(distance, -WINSOR_SIGMAS), WINSOR_SIGMAS)
    clipped *= sigma
    # where nothing ever varied there is no scale to clip to: the first change sets it
    whole = variance == 0.0
    if youngest < YOUNG:
        whole |= number < YOUNG
    if whole.any():
        np.copyto(clipped, away, where=whole)
    young = youngest < 1.0 / WEIGHTS[-1]
    weight = np.maximum(_WEIGHT, 1.0 / (number + 1.0)) if young else _WEIGHT
    step = np.multiply(weight, clipped, out=away)
    clipped *= step
    variance += clipped
    variance *= 1.0 - weight
    mean += step
    moved += step[_SHORT]
    sigma_after = np.maximum(np.sqrt(variance[_SHORT]), least)
    keep(table, "anomaly_usual", at, state)
    return Usual(distance, moved, sigma[_LONG], sigma_after, sigma[_LONG] <= least, low, high)
