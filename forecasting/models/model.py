"""What every model of the menu is: it fits many clean series at once, and says of each what it would have said at every origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecasting.models.batch import Batch
    from forecasting.models.trial import Trial

Kind = Literal["gauge", "counter"]
"""What a series is: values that go up and down, or a count that only grows (until it starts again from nothing)."""


class Fitted(Protocol):
    """A model after the last point of each of n series, in the units of their batch. Rows that are not `fits` hold nothing of worth."""

    @property
    def fits(self) -> NDArray[np.bool_]:
        """(n,): which series it could be fitted to."""
        ...

    @property
    def tested(self) -> NDArray[np.float64]:
        """(n, o, k): what it says at the trial's origins, knowing only what came before (its few parameters know all)."""
        ...

    @property
    def mean(self) -> NDArray[np.float64]:
        """(n, horizon): the point forecast."""
        ...

    @property
    def spread(self) -> NDArray[np.float64]:
        """(n, horizon): the standard deviation that the model itself expects."""
        ...

    def simulate(self, row: int, paths: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(paths, horizon): futures of one series."""
        ...


class Model(Protocol):
    """`minimum_points` is the shortest series it is fitted to; `cost` multiplies its backtest error: a model must earn its place."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def minimum_points(self) -> int: ...
    @property
    def cost(self) -> float: ...

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Fitted: ...


@dataclass(frozen=True, slots=True)
class Linear:
    """A model whose futures are its mean plus its response to errors like the past ones: every gauge model of the menu is one.

    `response` (n, horizon): what an error of one does to the value it occurs in (1), and to each later one. `errors` (n, w) are
    those of one step, NaN where there is none. `drift` (n, horizon): standard deviation of what the parameters' own uncertainty adds;
    it bends a whole path one way.
    """

    fits: NDArray[np.bool_]
    tested: NDArray[np.float64]
    mean: NDArray[np.float64]
    response: NDArray[np.float64]
    errors: NDArray[np.float64]
    drift: NDArray[np.float64]

    @property
    def spread(self) -> NDArray[np.float64]:
        known = np.isfinite(self.errors)
        variance = np.where(known, self.errors, 0.0) ** 2
        variance = variance.sum(axis=1) / np.maximum(1, known.sum(axis=1))
        out: NDArray[np.float64] = np.sqrt(variance[:, None] * np.cumsum(self.response**2, axis=1) + self.drift**2)
        return out

    def simulate(self, row: int, paths: int, rng: np.random.Generator) -> NDArray[np.float64]:
        errors = self.errors[row][np.isfinite(self.errors[row])]
        if errors.size == 0:
            errors = np.zeros(1)
        horizon = self.mean.shape[1]
        drawn = rng.choice(errors - errors.mean(), size=(paths, horizon))
        later = np.arange(horizon) - np.arange(horizon)[:, None]
        spreading = np.where(later >= 0, self.response[row][np.maximum(later, 0)], 0.0)
        out: NDArray[np.float64] = self.mean[row] + drawn @ spreading + rng.standard_normal((paths, 1)) * self.drift[row]
        return out


def chosen(
    loss: NDArray[np.float64], variants: NDArray[np.float64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Of variants (n, o, g, k) the one of least `loss` (n, g) for each row: its number (n,), and what it says, (n, o, k)."""
    best = loss.argmin(axis=1)
    return best, variants[rows, np.arange(variants.shape[1]), best[:, None]]
