"""What repeats: a period found in the series' own autocorrelation, its shape carried on, and a level that follows beneath."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.models.batch import lines
from forecasting.models.model import Kind, Linear, chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecasting.models.batch import Batch
    from forecasting.models.trial import Trial

SHORTEST_PERIOD: Final = 4
CYCLES: Final = 2
"""Full cycles that must be known: one cannot be told from a coincidence."""

_LEAST_CORRELATION: Final = 0.5
_DIP: Final = 0.25
"""Between two peaks the autocorrelation falls below this; what only wanders never does."""
_AS_ALIKE: Final = 0.9

_ALPHAS: Final = np.array([0.02, 0.1, 0.3, 0.1, 0.3, 0.7])
_GAMMAS: Final = np.array([0.1, 0.1, 0.1, 0.4, 0.4, 0.3])


@dataclass(frozen=True, slots=True)
class Seasonal:
    """Additive Holt-Winters without a trend, for the series in which a period is found."""

    name: str = "seasonal"
    kind: Kind = "gauge"
    minimum_points: int = CYCLES * SHORTEST_PERIOD
    cost: float = 1.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        n = len(batch)
        flat = np.zeros((n, horizon))
        nothing = np.full(batch.z.shape, np.nan)
        out = Linear(np.zeros(n, dtype=np.bool_), np.zeros_like(trial.actual), flat.copy(), flat.copy(), nothing, flat)
        period = periods(batch)
        rows = np.nonzero(period)[0]
        if rows.size == 0:
            return out
        part = replace(batch, z=batch.z[rows], length=batch.length[rows], last=batch.last[rows], scale=batch.scale[rows])
        which = trial.of(rows)
        out.fits[rows] = True
        out.tested[rows], out.mean[rows], out.response[rows], out.errors[rows] = _fit(part, which, horizon, period[rows])
        return out


def periods(batch: Batch) -> NDArray[np.int64]:
    """(n,): steps after which each series repeats itself best, 0 where it does not."""
    n, width = batch.z.shape
    slope, end = lines(batch.z, batch.newest, np.zeros_like(batch.newest))
    lag = np.arange(width)
    rest = np.where(batch.inside, batch.z - (end + slope * (lag - batch.newest)), 0.0)
    spectrum = np.fft.rfft(rest, 2 * width, axis=1)
    together = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :width]
    length = batch.length[:, None]
    likeness = together / np.maximum(together[:, :1], 1e-300) * (length / np.maximum(length - lag, 1))
    peak = np.zeros(likeness.shape, dtype=np.bool_)
    peak[:, 1:-1] = (likeness[:, 1:-1] >= likeness[:, :-2]) & (likeness[:, 1:-1] >= likeness[:, 2:])
    peak &= (likeness >= _LEAST_CORRELATION) & np.maximum.accumulate(likeness < _DIP, axis=1)
    peak &= (lag >= SHORTEST_PERIOD) & (lag <= length // CYCLES)
    likeness = np.where(peak, likeness, 0.0)
    # Twice a period is as alike as once; the shorter is known better.
    best = (peak & (likeness >= _AS_ALIKE * likeness.max(axis=1, keepdims=True))).argmax(axis=1)
    return np.where(peak[np.arange(n), best], best, 0)


def _fit(
    batch: Batch, trial: Trial, horizon: int, period: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(tested, mean, response, errors). The first cycle gives the shape; origins within it know no more than its middle."""
    n, width = batch.z.shape
    variants, longest = _ALPHAS.size, int(period.max())
    rows = np.arange(n)
    cycle = np.arange(longest) < period[:, None]
    first = batch.z[:, :longest]
    middle = (first * cycle).sum(axis=1) / period
    # `shape[:, p]` is what the season adds at columns p, p + period, ...; it only changes at its own column.
    shape = np.repeat(np.where(cycle, first - middle[:, None], 0.0)[:, :, None], variants, axis=2)
    level = np.repeat(middle[:, None], variants, axis=1)
    so_far = np.cumsum(batch.z, axis=1) / np.arange(1, width + 1)
    levels, added, errors = np.empty((width, n, variants)), np.empty((width, n, variants)), np.full((width, n, variants), np.nan)
    for column in range(width):
        phase = column % period
        season = shape[rows, phase]
        beyond = (column >= period)[:, None]
        error = np.where(beyond, batch.z[:, column, None] - level - season, 0.0)
        level = level + _ALPHAS * error
        shape[rows, phase] = season + _GAMMAS * (1 - _ALPHAS) * error
        levels[column], added[column] = np.where(beyond, level, so_far[:, column, None]), shape[rows, phase]
        errors[column] = np.where(beyond, error, np.nan)

    def ahead(at: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """From `at` (n, m): the newest level, and the season as it was at the newest column of the same phase; (n, m, g, k)."""
        target = at[:, :, None] + steps
        back = -((at[:, :, None] - target) // period[:, None, None])
        column = np.maximum(target - back * period[:, None, None], target % period[:, None, None])
        season = np.where(at[:, :, None, None] < period[:, None, None, None] - 1, 0.0, added[column, rows[:, None, None]])
        return (levels[at, rows[:, None]][:, :, None, :] + season).transpose(0, 1, 3, 2)

    tests = ahead(trial.at, trial.steps)
    best, tested = chosen(trial.loss(tests), tests, rows[:, None])
    each = np.arange(1, horizon + 1)
    mean = ahead(batch.newest, each)[rows, 0, best]
    later = np.arange(horizon)
    response = np.where(later == 0, 1.0, _ALPHAS[best][:, None])
    again = (later > 0) & (later % period[:, None] == 0)
    response = response + np.where(again, (_GAMMAS * (1 - _ALPHAS))[best][:, None], 0.0)
    return tested, mean, response, np.where(batch.inside, errors[:, rows, best].T, np.nan)
