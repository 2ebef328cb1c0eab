"""Shift of the short-window mean and of the variance: is the last dozen of points unlike the last hundred?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import tails

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.table import Table

LIMIT: Final = 8.0
"""Decades that score 0.5."""
MOST_RATIO: Final = 1e6
"""Of standard deviations that is told apart: a series that falls silent must not grow ever stranger."""


def define(table: Table, width: int, options: Options) -> None:
    del options
    tails.define(table, "shift", width, 2)


def surprise(table: Table, given: Given, options: Options) -> NDArray[np.float64]:
    """Decades (m,), the larger of mean and variance; NaN in the warm-up."""
    usual = given.usual
    mean = np.abs(usual.mean_after[0] - usual.mean[-1]) / usual.sigma[-1]
    ratio = np.maximum(usual.sigma_after[0], 1e-3 * usual.sigma[-1]) / usual.sigma[-1]
    spread = np.minimum(np.maximum(ratio, 1.0 / ratio), MOST_RATIO) - 1.0
    decades = tails.surprise(table, "shift", given, np.stack((mean, spread)))
    return np.where(given.number >= options.warm_up, np.maximum(decades[0], decades[1]), np.nan)
