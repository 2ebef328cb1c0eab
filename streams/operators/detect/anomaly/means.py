"""Running means of each series, of several lengths: the way a value took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly.places import keep, planes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.places import Where
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

WEIGHTS: Final = (0.1, 0.05, 0.01, 0.005)
"""Of the newest point: memories of about 10, 20, 100 and 200 points."""
_WEIGHT: Final = np.array(WEIGHTS)[:, None]


def define(table: Table, width: int) -> None:
    table.define_planes("anomaly_means", np.float64, 0.0, len(WEIGHTS), width)


def take(table: Table, at: Where, values: Floats, number: NDArray[np.int32], youngest: int) -> Floats:
    """Takes `values` (m,) in; the means (len(WEIGHTS), m) with them, to be read only."""
    means: Floats = planes(table, "anomaly_means", at)
    means += weights(number, youngest) * (values - means)
    keep(table, "anomaly_means", at, means)
    return means


def weights(number: NDArray[np.int32], youngest: int) -> Floats:
    """Of the newest point in each mean, (len(WEIGHTS), 1 or m). A young series' mean is that of all its points."""
    return np.maximum(_WEIGHT, 1.0 / (number + 1.0)) if youngest < 1.0 / WEIGHTS[-1] else _WEIGHT
