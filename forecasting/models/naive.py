"""The last value stays: the forecast the others must beat; how uncertain it is, its own past errors say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecasting.models.model import Kind, Linear

if TYPE_CHECKING:
    from forecasting.models.batch import Batch
    from forecasting.models.trial import Trial


@dataclass(frozen=True, slots=True)
class Naive:
    """Fits anything with one point."""

    name: str = "naive"
    kind: Kind = "gauge"
    minimum_points: int = 1
    cost: float = 1.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        n = len(batch)
        known = np.repeat(batch.z[batch.rows, trial.at][:, :, None], trial.steps.size, axis=2)
        errors = np.where(batch.inside[:, 1:], np.diff(batch.z, axis=1), np.nan)
        flat = np.zeros((n, horizon))
        return Linear(np.ones(n, dtype=np.bool_), known, flat, np.ones((n, horizon)), errors, flat)
