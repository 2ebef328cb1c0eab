"""The last value stays, as uncertain as the series' own past changes over the same distance: the forecast the others must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecasting.models.model import Unfit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class FittedNaive:
    """`y` is the series itself: its errors are empirical."""

    y: NDArray[np.float64]

    def mean(self, horizon: int) -> NDArray[np.float64]:
        return np.full(horizon, self.y[-1])

    def simulate(self, horizon: int, paths: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Each path repeats a stretch of the past, up or down, and goes on with further stretches where the past is too short.

        A stretch y[s + h] - y[s] keeps what independent steps lose: noise around a level does not wander off.
        """
        changes = np.diff(self.y)
        if changes.size == 0:
            return np.full((paths, horizon), self.y[-1])
        block = min(horizon, max(1, changes.size // 2))
        blocks = -(-horizon // block)
        starts = rng.integers(0, changes.size - block + 1, size=(paths, blocks))
        sign = rng.choice((-1.0, 1.0), size=(paths, blocks, 1))
        steps = changes[starts[:, :, None] + np.arange(block)] * sign
        path: NDArray[np.float64] = self.y[-1] + np.cumsum(steps.reshape(paths, -1)[:, :horizon], axis=1)
        return path

    def after(self, y: NDArray[np.float64]) -> FittedNaive:
        return FittedNaive(y)


@dataclass(frozen=True, slots=True)
class Naive:
    """Fits anything with one point."""

    name: str = "naive"
    minimum_points: int = 1
    cost: float = 1.0

    def fit(self, y: NDArray[np.float64]) -> FittedNaive:
        if y.size < 1 or not np.isfinite(y).all():
            raise Unfit("naive: no finite point")
        return FittedNaive(y)
