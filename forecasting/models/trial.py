"""At which past moments every model is asked what came next: the rolling origins of a backtest, for all series of a batch at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecasting.models.batch import Batch

ORIGINS: Final = 48
"""Origins per series, evenly spaced over its later two thirds; models are fitted once, only their state is that of the origin."""

CHECKPOINTS: Final = 8
"""Steps ahead that are compared, closer together at first; each stands for the steps since the one before."""

FIRST_ORIGIN: Final = 6
"""Points before the earliest origin: what the most demanding model needs to say anything."""

_LEAST_SHARE: Final = 3
"""A third of a series is never forecast from less, and nothing is compared further ahead than that."""


@dataclass(frozen=True, slots=True)
class Trial:
    """`at` (n, o) is the last known column of each origin, `steps` (k,) how far ahead it is compared with `actual` (n, o, k).

    `known` (n, o, k): the series went on that far. `weight` sums to one over each row of which anything is known.
    """

    at: NDArray[np.int64]
    steps: NDArray[np.int64]
    actual: NDArray[np.float64]
    known: NDArray[np.bool_]
    weight: NDArray[np.float64]

    def loss(self, forecasts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted mean absolute error, (n,), of `forecasts` (n, o, k); of variants (n, o, g, k) the same, (n, g)."""
        out: NDArray[np.float64]
        if forecasts.ndim == 3:
            out = np.einsum("nok,nok->n", np.abs(forecasts - self.actual), self.weight)
        else:
            out = np.einsum("nogk,nok->ng", np.abs(forecasts - self.actual[:, :, None, :]), self.weight)
        return out

    def of(self, rows: NDArray[np.int64]) -> Trial:
        """The same for some of the rows."""
        return Trial(self.at[rows], self.steps, self.actual[rows], self.known[rows], self.weight[rows])

    @property
    def possible(self) -> NDArray[np.bool_]:
        """(n,): whether anything could be compared."""
        out: NDArray[np.bool_] = np.any(self.known, axis=(1, 2))
        return out


def trial(batch: Batch, horizon: int) -> Trial:
    """Origins for each row; a row that is too short has none that is known. Raises ValueError for a horizon of nothing."""
    if horizon < 1:
        raise ValueError(f"horizon is {horizon} steps, 1 is the least")
    length = batch.length[:, None]
    steps = np.unique(np.round(np.geomspace(1, horizon, CHECKPOINTS)).astype(np.int64))
    first = np.maximum(FIRST_ORIGIN - 1, length // _LEAST_SHARE)
    at = np.round(first + np.linspace(0, 1, ORIGINS) * np.maximum(0, length - 2 - first)).astype(np.int64)
    target = at[:, :, None] + steps
    # A short series has fewer places for an origin than are asked for; each counts once.
    repeated = np.diff(at, axis=1, prepend=-1) == 0
    known = ~repeated[:, :, None] & (target < length[:, :, None]) & (steps <= np.maximum(1, length // _LEAST_SHARE)[:, :, None])
    at = np.minimum(at, length - 1)
    actual = np.where(known, batch.z[batch.rows[:, :, None], np.minimum(target, batch.z.shape[1] - 1)], 0.0)
    times = known.sum(axis=1)
    share = np.where(times > 0, np.diff(steps, prepend=0), 0.0)
    share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300) / np.maximum(times, 1)
    return Trial(at, steps, actual, known, known * share[:, None, :])
