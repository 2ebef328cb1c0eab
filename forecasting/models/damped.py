"""The damped trend: what rises levels off. Blind beyond about 50 steps: a slope that fades by 0.97 a step gains 32 in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from forecasting.models.smoothing import Weights, fit_smoothing, grid

if TYPE_CHECKING:
    from forecasting.models.batch import Batch
    from forecasting.models.model import Kind, Linear
    from forecasting.models.trial import Trial

MINIMUM_POINTS: Final = 12
"""Of fewer, chance alone makes a rise that levels off."""

_WEIGHTS: Final[Weights] = grid((0.1, 0.3, 0.6, 0.9), (0.05, 0.3), (0.85, 0.97))


@dataclass(frozen=True, slots=True)
class Damped:
    """ETS(A,Ad,N). It must be a third better than others to be chosen: on a straight leak all fit alike, and only this one is wrong."""

    name: str = "damped"
    kind: Kind = "gauge"
    minimum_points: int = MINIMUM_POINTS
    cost: float = 1.5

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        return fit_smoothing(batch, trial, horizon, _WEIGHTS)
