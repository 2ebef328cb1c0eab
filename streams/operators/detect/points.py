"""Points: means of what a device said, over stretches that end at the same moments for all devices.

What judges values slowly (detectors, comparisons) sees points, not samples: it costs a tenth, and noise within a stretch is gone. A point
ends with the first sample in a new cell of a grid in time, so devices that are read together are always compared over the same stretch,
whenever each of them was first seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]


def define(table: Table, width: int) -> None:
    """Columns for `width` metrics."""
    table.define("point_sum", np.float64, 0.0, width)
    table.define("point_count", np.int32, 0, width)
    table.define("point_at_ns", np.int64, 0)


def add(table: Table, rows: NDArray[np.intp], values: Floats) -> None:
    """Adds `values` (n, width); NaN adds nothing."""
    news = ~np.isnan(values)
    table["point_sum"][rows] += np.where(news, values, 0.0)
    table["point_count"][rows] += news


def due(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], point_ns: int) -> NDArray[np.intp]:
    """Positions of the rows whose point ends now."""
    return np.flatnonzero(at_ns // point_ns != table["point_at_ns"][rows] // point_ns)


def end(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int32]]:
    """Means (n, width) of the points that end, NaN where nothing was said, and of how many samples they are."""
    count = table["point_count"][rows]
    means: Floats = np.divide(table["point_sum"][rows], count, out=np.full(count.shape, np.nan), where=count > 0)
    table["point_sum"][rows] = 0.0
    table["point_count"][rows] = 0
    table["point_at_ns"][rows] = at_ns
    return means, count
