"""Chooses a model per series: what each would have said at past origins, against what came; the lowest scaled error wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.models import MENU, NAIVE, Counting, trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecasting.models import Batch, Fitted, Kind, Model, Trial

_SIMPLEST: Final[dict[Kind, Model]] = {"gauge": NAIVE, "counter": Counting()}
"""Fits anything that has a point, and is what remains where nothing can be compared."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """The menu fitted to a batch. `mase` (n, m): mean absolute error over all origins, scaled by that of naive one step ahead; NaN
    where a model could not be fitted or compared. `order` (n, m): models by `mase` after their cost, those that fit first. `broken` (n, m):
    it was fitted, and what came out is not finite."""

    models: tuple[Model, ...]
    fitted: tuple[Fitted, ...]
    trial: Trial
    mase: NDArray[np.float64]
    order: NDArray[np.int64]
    broken: NDArray[np.bool_]


def backtest(batch: Batch, horizon: int, menu: Sequence[Model] = MENU, kind: Kind = "gauge") -> Backtest:
    """Fit every model of the menu that is for this kind of series, and the simplest. Raises ValueError for a horizon of nothing."""
    asked = trial(batch, horizon)
    models = tuple(model for model in menu if model.kind == kind)
    if _SIMPLEST[kind] not in models:
        models = (_SIMPLEST[kind], *models)
    fitted = tuple(model.fit(batch, asked, horizon) for model in models)
    changes = np.where(batch.inside[:, 1:], np.abs(np.diff(batch.z, axis=1)), 0.0).sum(axis=1) / np.maximum(1, batch.length - 1)
    scale = np.maximum(changes, 1e-12)
    losses = np.full((len(batch), len(models)), np.nan)
    broken = np.zeros(losses.shape, dtype=np.bool_)
    for column, (model, found) in enumerate(zip(models, fitted, strict=True)):
        fits = found.fits & (batch.length >= model.minimum_points)
        loss = asked.loss(np.where(asked.known, found.tested, 0.0))
        sound = np.isfinite(loss) & np.isfinite(found.mean).all(axis=1) & np.isfinite(found.spread).all(axis=1)
        losses[:, column] = np.where(fits & sound, loss, np.nan)
        broken[:, column] = fits & ~sound
    costs = np.array([model.cost for model in models])
    # Where nothing can be compared the simplest is what is left; where others do no better, it comes first.
    ranks = np.where(asked.possible[:, None], losses, np.where(np.arange(len(models)) == models.index(_SIMPLEST[kind]), 0.0, np.nan))
    ranks = np.where(np.isfinite(ranks), ranks * costs + 1e-9 * np.arange(len(models)), np.inf)
    mase = np.where(asked.possible[:, None], losses / scale[:, None], np.nan)
    return Backtest(models, fitted, asked, mase, np.argsort(ranks, axis=1, kind="stable"), broken)
