"""Holt's linear trend: what rises goes on rising, at the pace of late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from forecasting.models.smoothing import MINIMUM_POINTS, Weights, fit_smoothing, grid

if TYPE_CHECKING:
    from forecasting.models.batch import Batch
    from forecasting.models.model import Kind, Linear
    from forecasting.models.trial import Trial

_WEIGHTS: Final[Weights] = grid((0.1, 0.3, 0.6, 0.9), (0.02, 0.1, 0.3))


@dataclass(frozen=True, slots=True)
class Holt:
    """ETS(A,A,N)."""

    name: str = "holt"
    kind: Kind = "gauge"
    minimum_points: int = MINIMUM_POINTS
    cost: float = 1.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        return fit_smoothing(batch, trial, horizon, _WEIGHTS)
