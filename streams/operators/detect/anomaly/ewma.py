"""Distance from the running mean at three time constants, each measured against how far off this series usually is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import tails

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.anomaly.usual import Usual
    from streams.operators.detect.table import Table

LIMIT: Final = 8.0
"""Decades that score 0.5: about 40 standard deviations where that was never seen in 2,000 points."""


def define(table: Table, width: int, options: Options) -> None:
    del options
    tails.define(table, "ewma", width, 3)


def surprise(table: Table, given: Given, options: Options) -> NDArray[np.float64]:
    """Decades (m,), the mean of the three; NaN in the warm-up."""
    decades = tails.surprise(table, "ewma", given, np.abs(given.usual.distance)).mean(axis=0)
    return np.where(given.number >= options.warm_up, decades, np.nan)


def band(usual: Usual, sigmas: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What was expected before the point, low and high (m,), by the middle time constant."""
    return usual.mean[1] - sigmas * usual.sigma[1], usual.mean[1] + sigmas * usual.sigma[1]
