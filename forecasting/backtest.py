"""Chooses a model per series: rolling-origin backtest of each against naive, the lowest scaled error wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.models import MENU, Unfit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecasting.models import Fitted, Model

ORIGINS: Final = 3
"""Origins per series. Parameters are estimated once, from the whole series, the state at each origin from what precedes it: refits
would cost three times as much, and the two or three weights tell little of the future."""

LEAST_POINTS: Final = max(model.minimum_points for model in MENU)
"""Every model is compared at the same origins, so the earliest must do for all."""


@dataclass(frozen=True, slots=True)
class Score:
    """Mean absolute error over all origins, scaled by that of naive one step ahead (MASE). `model.cost` is not in it.

    `fitted` is the model after the whole series.
    """

    model: Model
    fitted: Fitted
    mase: float


def origins(points: int, horizon: int) -> list[tuple[int, int]]:
    """(points to fit, steps to compare) of each origin, the newest last; empty where the series is too short to leave any out."""
    steps = min(horizon, max(1, points // 4))
    shift = max(1, steps // 2)
    found = [(points - steps - i * shift, steps) for i in range(ORIGINS)]
    return [(n, s) for n, s in reversed(found) if n >= max(LEAST_POINTS, points // 2 - 1)]


def backtest(y: NDArray[np.float64], horizon: int, menu: Sequence[Model] = MENU) -> list[Score]:
    """Scores of the models that could be fitted, the best (after cost) first. Empty where nothing could be compared.

    `y` is clean, shape (n,); `horizon` in steps, at least 1.
    """
    if horizon < 1:
        raise ValueError(f"horizon is {horizon} steps, 1 is the least")
    cuts = origins(y.size, horizon)
    scale = max(float(np.abs(np.diff(y)).mean()) if y.size > 1 else 0.0, 1e-12 * float(np.abs(y).max(initial=0.0)), 1e-300)
    scores = []
    for model in menu:
        try:
            fitted = model.fit(y)
        except Unfit:
            continue
        errors = [float(np.abs(y[n : n + steps] - fitted.after(y[:n]).mean(steps)).mean()) for n, steps in cuts]
        if errors and np.isfinite(errors).all():
            scores.append(Score(model, fitted, float(np.mean(errors)) / scale))
    return sorted(scores, key=lambda score: score.mase * score.model.cost)
