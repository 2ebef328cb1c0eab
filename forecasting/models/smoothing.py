"""Exponential smoothing of many series with many weights at once: a level, a slope that may fade, and a drift; the best weights win.

Why not statsmodels: 10-30 ms a series where this takes a fifth of one, optimisers that fail on exact lines and flat stretches, NaN
that nobody is told of. A coarse grid loses nothing that a rolling backtest can see.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.models.batch import lines, take
from forecasting.models.model import Linear, chosen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecasting.models.batch import Batch
    from forecasting.models.trial import Trial

MINIMUM_POINTS: Final = 6
"""Two weights, and a start from a straight line, leave something to estimate errors from."""

_START_POINTS: Final = 10
"""A slope begins as that of the line through so many points, or through the earlier half of a shorter series."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Variants, each (g,): l' = l + phi b + alpha e, b' = phi b + beta e."""

    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    phi: NDArray[np.float64]

    def gained(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """(g, k): how many slopes are added in so many steps."""
        out: NDArray[np.float64] = np.cumsum(self.phi[:, None] ** np.arange(1, int(steps[-1]) + 1), axis=1)[:, steps - 1]
        return out


def grid(alphas: Sequence[float], shares: Sequence[float] = (0.0,), phis: Sequence[float] = (1.0,)) -> Weights:
    """Every combination; beta is a share of alpha, which keeps all of them stable."""
    every = np.array([(alpha, alpha * share, phi) for alpha, share, phi in product(alphas, shares, phis)])
    return Weights(every[:, 0], every[:, 1], every[:, 2])


def fit_smoothing(batch: Batch, trial: Trial, horizon: int, weights: Weights, *, drift_share: float = 0.0) -> Linear:
    """Without any beta there is no slope but the drift: `drift_share` of that of the line through all that came before."""
    sloped = bool(weights.beta.any())
    half = np.minimum(_START_POINTS, np.maximum(2, batch.length // 2))[:, None] - 1
    slope, end = lines(batch.z, np.minimum(half, batch.newest), np.zeros_like(half))
    slope = slope if sloped else np.zeros_like(slope)
    before = (end - slope * (half + 1))[:, 0] if sloped else batch.z[:, 0]
    levels, slopes, errors = _run(batch.z, before, slope[:, 0], weights)
    each = np.arange(1, horizon + 1)
    variants = take(levels, batch, trial.at)[..., None] + take(slopes, batch, trial.at)[..., None] * weights.gained(trial.steps)
    mean = take(levels, batch, batch.newest)[:, 0, :, None] + take(slopes, batch, batch.newest)[:, 0, :, None] * weights.gained(each)
    if drift_share:
        at_origin, _ = lines(batch.z, trial.at, np.zeros_like(trial.at))
        variants = variants + drift_share * (at_origin[..., None] * trial.steps)[:, :, None, :]
        now, _ = lines(batch.z, batch.newest, np.zeros_like(batch.newest))
        mean = mean + drift_share * (now * each)[:, None, :]
    best, tested = chosen(trial.loss(variants), variants, batch.rows)
    rows = np.arange(len(batch))
    gained = weights.gained(each)[best]
    response = np.ones((len(batch), horizon))
    response[:, 1:] = weights.alpha[best][:, None] + weights.beta[best][:, None] * gained[:, :-1]
    return Linear(
        fits=batch.length >= MINIMUM_POINTS,
        tested=tested,
        mean=mean[rows, best],
        response=response,
        errors=np.where(batch.inside, errors[:, rows, best].T, np.nan),
        drift=slope_error(batch)[:, None] * gained if sloped else drift_share * slope_error(batch)[:, None] * each,
    )


def slope_error(batch: Batch) -> NDArray[np.float64]:
    """(n,): how far the slope of the line through the whole series may be off by chance, one standard deviation."""
    slope, end = lines(batch.z, batch.newest, np.zeros_like(batch.newest))
    rest = np.where(batch.inside, batch.z - (end + slope * (np.arange(batch.z.shape[1]) - batch.newest)), 0.0)
    points = batch.length
    out: NDArray[np.float64] = np.sqrt((rest**2).sum(axis=1) / np.maximum(1, points - 2) / np.maximum(points * (points**2 - 1) / 12, 1))
    return out


def _run(
    z: NDArray[np.float64], level: NDArray[np.float64], slope: NDArray[np.float64], weights: Weights
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Levels, slopes and one-step errors after each column, (w, n, g) each; `level` and `slope` (n,) are those before the first."""
    n, width = z.shape
    variants = weights.alpha.size
    levels, slopes, errors = np.empty((width, n, variants)), np.zeros((width, n, variants)), np.empty((width, n, variants))
    at, by = np.repeat(level[:, None], variants, axis=1), np.repeat(slope[:, None], variants, axis=1)
    if not weights.beta.any():
        for column in range(width):
            errors[column] = z[:, column, None] - at
            at = at + weights.alpha * errors[column]
            levels[column] = at
        return levels, slopes, errors
    for column in range(width):
        by = by * weights.phi
        at = at + by
        error = z[:, column, None] - at
        at = at + weights.alpha * error
        by = by + weights.beta * error
        levels[column], slopes[column], errors[column] = at, by, error
    return levels, slopes, errors
