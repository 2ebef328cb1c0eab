"""EWMA z-scores of many series at once: how far a value is from what it usually is, as a score of 0-1 with its boundary at 0.5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

SIGMA_FLOOR_RATIO: Final = 0.01
"""Least standard deviation as a share of the mean: readings are quantised, and a constant series must still notice a change."""

MOST_WEIGHT: Final = 0.1
"""Most that one value moves a series that is past its warm-up, however long the gap before it."""

FORGET_HALF_LIVES: Final = 4
"""A gap of more half-lives than this starts the warm-up again."""


@dataclass(frozen=True, slots=True)
class Ewma:
    """`half_life_ns`: age at which a value counts half. `limit_sigmas`: distance that scores 0.5. `winsor_sigmas`: distance a value is
    clipped to before it moves mean and variance. Scores come after `warm_up` values."""

    half_life_ns: float
    warm_up: int
    winsor_sigmas: float
    limit_sigmas: float


def define(table: Table, width: int) -> None:
    """Columns for `width` metrics a series."""
    table.define("ewma_mean", np.float64, 0.0, width)
    table.define("ewma_variance", np.float64, 0.0, width)
    table.define("ewma_count", np.int32, 0, width)
    table.define("ewma_at_ns", np.int64, 0, width)


def score(
    table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: NDArray[np.float64], settings: Ewma
) -> NDArray[np.float64]:
    """Scores (n, A) of `values` (n, A) against what was before them, which they then join; NaN where a value is NaN or the series is new.

    Scale-invariant: x and 1e9 * x score alike. A series that adapts to a new level clears by itself: clipped residuals widen the variance.
    """
    mean, variance, count = table["ewma_mean"][rows], table["ewma_variance"][rows], table["ewma_count"][rows]
    known = ~np.isnan(values)
    passed = np.maximum(at_ns[:, None] - table["ewma_at_ns"][rows], 0)
    # after a long gap what was usual is no longer known: learn again
    count = np.where(passed > FORGET_HALF_LIVES * settings.half_life_ns, 0, count)
    x = np.where(known, values, mean)
    residual = x - mean
    sigma = np.maximum(np.sqrt(variance), SIGMA_FLOOR_RATIO * np.abs(mean))
    distance = np.abs(residual)
    # distance / (distance + limit) is 0.5 at the limit, 0 at 0, 1 far off, and needs no division by a sigma of zero
    reach = distance + settings.limit_sigmas * sigma
    scores = np.divide(distance, reach, out=np.zeros_like(reach), where=reach > 0)
    warm = count >= settings.warm_up

    aged = np.minimum(1.0 - np.exp2(-passed / settings.half_life_ns), MOST_WEIGHT)
    weight = np.where(warm, aged, 1.0 / (count + 1.0))
    clip = settings.winsor_sigmas * sigma
    # where nothing ever varied around zero there is no scale to clip to: the first change sets it
    clipped = np.where(warm & (clip > 0), np.clip(residual, -clip, clip), residual)
    table["ewma_mean"][rows] = np.where(known, mean + weight * clipped, mean)
    table["ewma_variance"][rows] = np.where(known, (1.0 - weight) * (variance + weight * clipped * clipped), variance)
    table["ewma_count"][rows] = count + known
    table["ewma_at_ns"][rows] = np.where(known, at_ns[:, None], table["ewma_at_ns"][rows])
    return np.where(known & warm, scores, np.nan)
