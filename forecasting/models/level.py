"""A level that follows slowly: what flickers goes back to its middle, where naive would stay on its last flicker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from forecasting.models.smoothing import MINIMUM_POINTS, Weights, fit_smoothing, grid

if TYPE_CHECKING:
    from forecasting.models.batch import Batch
    from forecasting.models.model import Kind, Linear
    from forecasting.models.trial import Trial

_WEIGHTS: Final[Weights] = grid((0.03, 0.1, 0.2, 0.4, 0.7))


@dataclass(frozen=True, slots=True)
class Level:
    """ETS(A,N,N)."""

    name: str = "level"
    kind: Kind = "gauge"
    minimum_points: int = MINIMUM_POINTS
    cost: float = 1.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        return fit_smoothing(batch, trial, horizon, _WEIGHTS)
