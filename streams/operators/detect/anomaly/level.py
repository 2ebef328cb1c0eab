"""Novelty of the level: how far is a value, or its distance to the recent mean, from all that the series has shown?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import means, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.table import Table

LIMIT: Final = 0.176
"""Scales from the nearest known value, weighted by `nearest`, that score 0.5."""
CHANGE: Final = 0.3
"""Weight of how new the distance to the mean of the last 20 points is: it varies more than the level does."""
LEAST: Final = 1e-9
"""Least range and step as a share of the level: above the rounding of a double, below what any sensor tells apart."""
TINY: Final = 1e-140
_MEAN: Final = means.WEIGHTS.index(0.05)


def define(table: Table, width: int, options: Options) -> None:
    del options
    nearest.define(table, "level", width)
    nearest.define(table, "change", width)


def surprise(table: Table, given: Given, options: Options) -> NDArray[np.float64]:
    """Scales (m,); NaN in the warm-up."""
    least = np.maximum(LEAST * np.abs(given.values), TINY)
    level = nearest.distance(table, "level", given.at, given.cells, given.values, least)
    change = nearest.distance(table, "change", given.at, given.cells, given.values - given.means[_MEAN], least)
    return np.where(given.number >= options.warm_up, np.maximum(level, CHANGE * change), np.nan)
