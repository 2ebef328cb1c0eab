"""The damped trend: what rises levels off. Best on real memory series, blind beyond about 50 steps (statsmodels caps phi at 0.98)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecasting.models.smoothing import MINIMUM_POINTS, FittedTrend, fit_trend

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Damped:
    """ETS(A,Ad,N). It must be a fifth better than Holt to be chosen: on a straight leak both fit alike and only Holt is right."""

    name: str = "damped"
    minimum_points: int = MINIMUM_POINTS
    cost: float = 1.2

    def fit(self, y: NDArray[np.float64]) -> FittedTrend:
        return fit_trend(y, damped=True)
