"""A robust straight line: least squares that outliers are pulled in for (Huber), through all of the series, its half or its quarter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.models.batch import lines
from forecasting.models.model import Kind, Linear, chosen
from forecasting.models.smoothing import MINIMUM_POINTS, slope_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecasting.models.batch import Batch
    from forecasting.models.trial import Trial

_SHARES: Final = (1.0, 0.5, 0.25)
_CLIPPED_SIGMAS: Final = 2.5
_ROUNDS: Final = 2


@dataclass(frozen=True, slots=True)
class Line:
    """The line of the share of the past that did best; values around it are as independent as they look."""

    name: str = "line"
    kind: Kind = "gauge"
    minimum_points: int = MINIMUM_POINTS
    cost: float = 1.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        z = _pulled_in(batch)
        each = np.arange(1, horizon + 1)
        tested, means, slopes, ends = [], [], [], []
        for share in _SHARES:
            slope, end = lines(z, trial.at, _first(trial.at, share))
            tested.append(end[..., None] + slope[..., None] * trial.steps)
            slope, end = lines(z, batch.newest, _first(batch.newest, share))
            means.append(end + slope * each)
            slopes.append(slope)
            ends.append(end)
        variants = np.stack(tested, axis=2)
        best, of_best = chosen(trial.loss(variants), variants, batch.rows)
        rows = np.arange(len(batch))
        slope, end = np.stack(slopes, axis=1)[rows, best], np.stack(ends, axis=1)[rows, best]
        first = np.stack([_first(batch.newest, share)[:, 0] for share in _SHARES], axis=1)[rows, best]
        at = np.arange(batch.z.shape[1])
        rest = batch.z - (end + slope * (at - batch.newest))
        points = batch.length - first
        # Of a line through k points the end is off by 2 sigma / sqrt(k), the slope by sqrt(12) sigma / k^1.5; they go together.
        uncertain = slope_error(batch)[:, None] * (batch.length / np.maximum(points, 1))[:, None] ** 1.5
        response = np.zeros((len(batch), horizon))
        response[:, 0] = 1.0
        return Linear(
            fits=batch.length >= MINIMUM_POINTS,
            tested=of_best,
            mean=np.stack(means, axis=1)[rows, best],
            response=response,
            errors=np.where(batch.inside & (at >= first[:, None]), rest, np.nan),
            drift=uncertain * (each + points[:, None] / 2),
        )


def _first(at: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """The first column of the newest `share` of columns 0 .. at, of six at least."""
    return np.maximum(0, at + 1 - np.maximum(MINIMUM_POINTS, (share * (at + 1)).astype(np.int64)))


def _pulled_in(batch: Batch) -> NDArray[np.float64]:
    """The series with what lies far from its line brought nearer."""
    z, inside = batch.z, batch.inside
    at = np.arange(z.shape[1]) - batch.newest
    for _ in range(_ROUNDS):
        slope, end = lines(z, batch.newest, np.zeros_like(batch.newest))
        line = end + slope * at
        rest = batch.z - line
        ordered = np.sort(np.where(inside, np.abs(rest), np.inf), axis=1)
        sigma = 1.4826 * ordered[np.arange(len(batch)), batch.length // 2 - (batch.length // 2 == batch.length)]
        most = (_CLIPPED_SIGMAS * sigma)[:, None]
        z = np.where(inside & (most > 0), line + np.clip(rest, -most, most), batch.z)
    return z
