"""The least that the menu could be off by: of each window the model that turns out best, chosen by what came.

It bounds a chooser among our models on the pasts that they are shown, cleaned and truncated; not mixtures of them, nor another model:
predict_linear itself does better in a tenth of the windows. What nobody can foretell (a load, a restart) is in it as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecasting.backtest import backtest
from forecasting.models import MENU, gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CHUNK = 200
"""Series fitted together."""


def least_errors(series: Sequence[Floats], futures: Floats, horizon: int) -> Floats:
    """Mean absolute errors (n,) of the best model of each of the clean `series` against `futures` (n, horizon), in their unit."""
    least = np.full(len(series), np.inf)
    for first in range(0, len(series), CHUNK):
        some = slice(first, first + CHUNK)
        batch = gather(series[some])
        tested = backtest(batch, horizon, MENU, "gauge")
        for model, fitted in zip(tested.models, tested.fitted, strict=True):
            fits = fitted.fits & (batch.length >= model.minimum_points)
            said = fitted.mean * batch.scale[:, None] + batch.last[:, None]
            error = np.abs(said - futures[some]).mean(axis=1)
            least[some] = np.where(fits & np.isfinite(error), np.minimum(least[some], error), least[some])
    return least
