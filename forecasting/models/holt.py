"""Holt's linear trend: what rises goes on rising. The only one of the menu that sees a limit far away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecasting.models.smoothing import MINIMUM_POINTS, FittedTrend, fit_trend

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Holt:
    """ETS(A,A,N)."""

    name: str = "holt"
    minimum_points: int = MINIMUM_POINTS
    cost: float = 1.0

    def fit(self, y: NDArray[np.float64]) -> FittedTrend:
        return fit_trend(y, damped=False)
