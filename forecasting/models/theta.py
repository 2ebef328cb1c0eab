"""Theta: a level that follows, and half the slope of the whole past; what won the M3 competition is no more than that (Hyndman 2003)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from forecasting.models.smoothing import MINIMUM_POINTS, Weights, fit_smoothing, grid

if TYPE_CHECKING:
    from forecasting.models.batch import Batch
    from forecasting.models.model import Kind, Linear
    from forecasting.models.trial import Trial

_WEIGHTS: Final[Weights] = grid((0.05, 0.2, 0.5, 0.8, 0.95))


@dataclass(frozen=True, slots=True)
class Theta:
    """Simple smoothing with a drift of half the line's slope."""

    name: str = "theta"
    kind: Kind = "gauge"
    minimum_points: int = MINIMUM_POINTS
    cost: float = 1.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        return fit_smoothing(batch, trial, horizon, _WEIGHTS, drift_share=0.5)
