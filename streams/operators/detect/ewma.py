"""EWMA z-scores of many series at once: how far a value is from what it usually is, as a score of 0-1 with its boundary at 0.5."""

from __future__ import annotations

import math
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

_TINY: Final = 1e-300


@dataclass(frozen=True, slots=True)
class Ewma:
    """`half_life_ns`: age at which a value counts half. `limit_sigmas`: distance that scores 0.5. `winsor_sigmas`: distance a value is
    clipped to before it moves mean and variance. Scores come after `warm_up` values."""

    half_life_ns: float
    warm_up: int
    winsor_sigmas: float
    limit_sigmas: float


def define(table: Table, width: int) -> None:
    """One column of shape (4, width): mean, variance, number of values, time of the last one (ns; a float64 is exact to 256 ns)."""
    table.define("ewma", np.float64, 0.0, 4, width)


def score(
    table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: NDArray[np.float64], settings: Ewma
) -> NDArray[np.float64]:
    """Scores (n, A) of `values` (n, A) against what was before them, which they then join; NaN where a value is NaN or the series is new.

    Scale-invariant: x and 1e9 * x score alike. A series that adapts to a new level clears by itself: clipped residuals widen the variance.
    """
    state = table["ewma"][rows]
    mean, variance, seen_ns = state[:, 0], state[:, 1], state[:, 3]
    passed = at_ns[:, None] - seen_ns
    # after a long gap what was usual is no longer known: learn again
    count = np.where(passed > FORGET_HALF_LIVES * settings.half_life_ns, 0.0, state[:, 2])
    warm = count >= settings.warm_up
    sigma = np.maximum(np.sqrt(variance), SIGMA_FLOOR_RATIO * np.abs(mean))
    residual = values - mean
    distance = np.abs(residual)
    # distance / (distance + limit) is 0.5 at the limit, 0 at 0 and 1 far off; the tiny number makes 0 of 0 / 0
    scores = distance / (distance + settings.limit_sigmas * sigma + _TINY)

    # 1 - 2 ** -x is x * ln 2 where x is small, and larger ones are capped
    aged = np.minimum(np.maximum(passed, 0) * (math.log(2) / settings.half_life_ns), MOST_WEIGHT)
    weight = np.where(warm, aged, 1.0 / (count + 1.0))
    # where nothing ever varied around zero there is no scale to clip to: the first change sets it
    clip = np.where(warm & (sigma > 0), settings.winsor_sigmas * sigma, np.inf)
    clipped = np.maximum(np.minimum(residual, clip), -clip)
    step = weight * clipped
    after = np.empty_like(state)
    after[:, 0] = mean + step
    after[:, 1] = (1.0 - weight) * (variance + step * clipped)
    after[:, 2] = count + 1.0
    after[:, 3] = at_ns[:, None]
    table["ewma"][rows] = np.where(np.isnan(values)[:, None, :], state, after)
    return np.where(warm, scores, np.nan)
