"""Running means of each series, of several lengths: the way a value took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly.places import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.places import Where
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

WEIGHTS: Final = (0.1, 0.05, 0.01, 0.005)
"""Of the newest point: memories of about 10, 20, 100 and 200 points."""
_WEIGHT: Final = np.array(WEIGHTS)[:, None]


def define(table: Table, width: int) -> None:
    table.define("anomaly_means", np.float64, 0.0, width, len(WEIGHTS))


def take(table: Table, at: Where, values: Floats, number: NDArray[np.int64]) -> Floats:
    """Takes `values` (m,) in; the means (len(WEIGHTS), m) with them."""
    state = table["anomaly_means"].reshape(-1, len(WEIGHTS))
    after = step(rows(state, at).T, values, number)
    state[at] = after.T
    return after


def step(before: Floats, values: Floats, number: NDArray[np.int64]) -> Floats:
    """Means one point on. A young series' mean is that of all its points."""
    weight = np.maximum(_WEIGHT, 1.0 / (number + 1.0)) if number.min() < 1.0 / WEIGHTS[-1] else _WEIGHT
    after: Floats = before + weight * (values - before)
    return after
