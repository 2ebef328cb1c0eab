"""Autoregression: what comes next from the last few values (or changes), fitted by least squares that shrinks towards naive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.models.model import Kind, Linear

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecasting.models.batch import Batch
    from forecasting.models.trial import Trial

LAGS: Final = 6
"""Values that the next one is taken from: twelve did no better on series of a few hours (measured: bench/forecast.py)."""

_LARGEST_ROOT: Final = {False: 0.999, True: 0.98}
"""Roots beyond are drawn in: an autoregression that explodes is a bad fit, never a forecast. Of changes, they would be trends for ever."""


@dataclass(frozen=True, slots=True)
class AutoReg:
    """AR(6) around the mean of the series; with `changes` ARIMA(6,1,0), which follows a level that wanders. `ridge` is the shrinkage."""

    name: str = "autoreg"
    changes: bool = False
    ridge: float = 1e-5
    kind: Kind = "gauge"
    minimum_points: int = 4 * LAGS
    cost: float = 1.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        inside = batch.inside
        if self.changes:
            x = np.where(inside, np.diff(batch.z, axis=1, prepend=batch.z[:, :1]), 0.0)
            middle = np.zeros(len(batch))
        else:
            middle = (batch.z * inside).sum(axis=1) / batch.length
            x = np.where(inside, batch.z - middle[:, None], 0.0)
        weights, errors = _least_squares(x, inside, self.ridge, towards_last=not self.changes, largest=_LARGEST_ROOT[self.changes])
        tested = _ahead(x, trial.at, weights, int(trial.steps[-1]))
        mean = _ahead(x, batch.newest, weights, horizon)
        impulse = np.zeros((len(batch), 1))
        impulse[:, 0] = 1.0
        response = np.concatenate(
            (impulse, _ahead(impulse, np.zeros((len(batch), 1), dtype=np.int64), weights, horizon)[:, 0, :-1]), axis=1
        )
        if self.changes:
            tested = np.cumsum(tested, axis=2) + batch.z[batch.rows, trial.at][..., None]
            mean = np.cumsum(mean, axis=2)
            response = np.cumsum(response, axis=1)
        else:
            tested, mean = tested + middle[:, None, None], mean + middle[:, None, None]
        return Linear(
            fits=batch.length >= self.minimum_points,
            tested=tested[..., trial.steps - 1],
            mean=mean[:, 0],
            response=response,
            errors=errors,
            drift=np.zeros((len(batch), horizon)),
        )


def _least_squares(
    x: NDArray[np.float64], inside: NDArray[np.bool_], ridge: float, *, towards_last: bool, largest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of the lags, (n, LAGS), newest first, and the errors they leave, (n, w)."""
    n, width = x.shape
    if width <= LAGS:
        return np.zeros((n, LAGS)), np.full((n, width), np.nan)
    lagged = np.stack([x[:, LAGS - lag : width - lag] for lag in range(1, LAGS + 1)], axis=2)
    known = inside[:, LAGS:]
    masked = lagged * known[..., None]
    square = np.einsum("nti,ntj->nij", masked, masked)
    product = np.einsum("nti,nt->ni", masked, x[:, LAGS:])
    shrink = ridge * np.trace(square, axis1=1, axis2=2) / LAGS
    square += (shrink + 1e-12)[:, None, None] * np.eye(LAGS)
    if towards_last:
        product[:, 0] += shrink
    weights = np.linalg.solve(square, product[..., None])[..., 0]
    companion = np.zeros((n, LAGS, LAGS))
    companion[:, 0] = weights
    companion[:, np.arange(1, LAGS), np.arange(LAGS - 1)] = 1.0
    root = np.abs(np.linalg.eigvals(companion)).max(axis=1)
    weights = weights * np.minimum(1.0, largest / np.maximum(root, 1e-9))[:, None] ** np.arange(1, LAGS + 1)
    errors = np.full((n, width), np.nan)
    errors[:, LAGS:] = np.where(known, x[:, LAGS:] - np.einsum("nti,ni->nt", lagged, weights), np.nan)
    return weights, errors


def _ahead(x: NDArray[np.float64], at: NDArray[np.int64], weights: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """The recursion from each of `at` (n, m): (n, m, steps). What lies before the first column is the middle, 0."""
    rows = np.arange(len(x))[:, None]
    lags = weights.shape[1]
    path = np.zeros((*at.shape, lags + steps))
    for lag in range(lags):
        path[..., lags - 1 - lag] = np.where(at >= lag, x[rows, np.maximum(0, at - lag)], 0.0)
    backwards = weights[:, None, ::-1]
    for step in range(lags, lags + steps):
        path[..., step] = (path[..., step - lags : step] * backwards).sum(axis=2)
    return path[..., lags:]
