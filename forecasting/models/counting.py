"""Counters that grow towards a limit: how many more come is negative binomial around a rate that is only known so well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.models.batch import lines
from forecasting.models.model import Kind, chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecasting.models.batch import Batch
    from forecasting.models.trial import Trial

_LEAST_POINTS: Final = 6
_SHARES: Final = (1.0, 0.5, 0.25)
_PRIOR_EVENTS: Final = 0.5
"""Jeffreys' prior of a Poisson rate: no event in n steps still leaves half a one possible."""


@dataclass(frozen=True, slots=True)
class FittedCounting:
    """`rate` (n,) events per step after the last point, `growth` (n,) by how much that rises each step, `dispersion` (n,) the variance
    of a step's events over their mean, at least 1; `events` (n,) how many independent ones the rate rests on, `points` (n,) the steps
    in which they were seen."""

    fits: NDArray[np.bool_]
    tested: NDArray[np.float64]
    rate: NDArray[np.float64]
    growth: NDArray[np.float64]
    dispersion: NDArray[np.float64]
    events: NDArray[np.float64]
    points: NDArray[np.int64]
    scale: NDArray[np.float64]
    horizon: int

    @property
    def mean(self) -> NDArray[np.float64]:
        out: NDArray[np.float64] = np.cumsum(self._rates(), axis=1) / self.scale[:, None]
        return out

    @property
    def spread(self) -> NDArray[np.float64]:
        total = np.cumsum(self._rates(), axis=1)
        variance = self.dispersion[:, None] * total + total**2 / (self.events[:, None] + _PRIOR_EVENTS)
        out: NDArray[np.float64] = np.sqrt(variance) / self.scale[:, None]
        return out

    def simulate(self, row: int, paths: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Cumulative sums of draws, so never below the last value."""
        known = float(self.events[row]) + _PRIOR_EVENTS
        rates = np.maximum(self._rates()[row], _PRIOR_EVENTS / float(self.points[row])) * rng.gamma(known, 1 / known, size=(paths, 1))
        over = float(self.dispersion[row]) - 1.0
        means = rng.gamma(np.maximum(rates / over, 1e-12), over) if over > 1e-3 else rates
        out: NDArray[np.float64] = np.cumsum(rng.poisson(np.minimum(means, 1e15)), axis=1) / self.scale[row]
        return out

    def _rates(self) -> NDArray[np.float64]:
        return np.maximum(0.0, self.rate[:, None] + self.growth[:, None] * np.arange(1, self.horizon + 1))


@dataclass(frozen=True, slots=True)
class Counting:
    """The rate of the share of the past that did best; where it `grows`, with the growth that this share shows."""

    name: str = "counting"
    grows: bool = False
    kind: Kind = "counter"
    minimum_points: int = 1
    cost: float = 1.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> FittedCounting:
        came = np.diff(batch.z, axis=1, prepend=batch.z[:, :1])
        variants, found = [], []
        for share in _SHARES:
            rate, growth = self._rate(came, trial.at, _first(trial.at, share))
            variants.append(_total(rate, growth, trial.steps) + batch.z[batch.rows, trial.at][..., None])
            found.append(np.stack(self._rate(came, batch.newest, _first(batch.newest, share)), axis=0)[..., 0])
        tests = np.stack(variants, axis=2)
        best, tested = chosen(trial.loss(tests), tests, batch.rows)
        rows = np.arange(len(batch))
        rate, growth = (np.stack([f[which] for f in found], axis=1)[rows, best] * batch.scale for which in (0, 1))
        first = np.stack([_first(batch.newest, share)[:, 0] for share in _SHARES], axis=1)[rows, best]
        column = np.arange(came.shape[1])
        seen = (column >= first[:, None]) & batch.inside & (column > 0)
        counts = np.where(seen, came, 0.0) * batch.scale[:, None]
        points = np.maximum(1, seen.sum(axis=1))
        mean = counts.sum(axis=1) / points
        expected = np.maximum(0.0, mean[:, None] + growth[:, None] * (column - (first + batch.length - 1)[:, None] / 2))
        variance = (np.where(seen, counts - expected, 0.0) ** 2).sum(axis=1) / np.maximum(1, points - 1)
        dispersion = np.maximum(1.0, variance / np.maximum(mean, 1e-12))
        return FittedCounting(
            fits=np.ones(len(batch), dtype=np.bool_),
            tested=tested,
            rate=rate,
            growth=growth,
            dispersion=np.where(mean > 0, dispersion, 1.0),
            events=np.where(mean > 0, counts.sum(axis=1) / dispersion, 0.0),
            points=points,
            scale=batch.scale,
            horizon=horizon,
        )

    def _rate(
        self, came: NDArray[np.float64], at: NDArray[np.int64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        growth, end = lines(came, at, first)
        if self.grows:
            return np.maximum(end, 0.0), growth
        return end - growth * (at - first) / 2, np.zeros_like(growth)


def _first(at: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """The first column of the newest `share`; nothing can be said to have come with the very first value."""
    return np.minimum(at, np.maximum(1, at + 1 - np.maximum(_LEAST_POINTS, (share * at).astype(np.int64))))


def _total(rate: NDArray[np.float64], growth: NDArray[np.float64], steps: NDArray[np.int64]) -> NDArray[np.float64]:
    each = np.arange(1, int(steps[-1]) + 1)
    rates = np.maximum(0.0, rate[..., None] + growth[..., None] * each)
    return np.cumsum(rates, axis=-1)[..., steps - 1]
