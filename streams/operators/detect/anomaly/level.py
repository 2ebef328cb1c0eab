"""Novelty of the level: how far is a value, or its distance to the recent mean, from all that the series has shown?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import means, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.table import Table

LIMIT: Final = 0.176
"""Scales from the nearest known value, weighted by `nearest`, that score 0.5."""
CHANGE: Final = 0.3
"""Weight of how new the distance to the mean of the last 20 points is: it varies more than the level does."""
_MEAN: Final = means.WEIGHTS.index(0.05)


def define(table: Table, width: int) -> None:
    nearest.define(table, "level", width)
    nearest.define(table, "change", width)


def size(table: Table, given: Given, closely: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Scales by LIMIT, (m,); 0 for what is well known, unless it is to be looked at `closely` (m,)."""
    level = nearest.distance(table, "level", given.at, given.cells, given.values, given.values, given.number, closely)
    off = given.values - given.means[_MEAN]
    change = nearest.distance(table, "change", given.at, given.cells, off, given.values, given.number, closely)
    change *= CHANGE
    np.maximum(level, change, out=level)
    level *= 1.0 / LIMIT
    return level
