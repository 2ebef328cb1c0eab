"""Tells news from echo: after a surprise only a larger one counts for a while, so that one event is said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]


def define(table: Table, width: int) -> None:
    """The largest of late, and the number of its point."""
    table.define("anomaly_peak", np.float32, 0.0, width)
    table.define("anomaly_peak_at", np.int32, 0, width)


def news(table: Table, cells: NDArray[np.intp], size: Floats, number: NDArray[np.int64], hold_points: int) -> tuple[Floats, Floats]:
    """`size` (m,) where it is above the peak of the last `hold_points`, else 0; and the peak, which falls to 0 meanwhile. NaN stays NaN."""
    peaks = table["anomaly_peak"].reshape(-1)
    since = table["anomaly_peak_at"].reshape(-1)
    held = peaks[cells].astype(np.float64)
    age = number - since[cells]
    held[age > hold_points] = 0.0
    # what equals the peak is kept in single precision: the same size again is no news
    above = size.astype(np.float32) > held
    at_least = size.astype(np.float32) >= held
    peaks[cells[at_least]] = size[at_least]
    since[cells[at_least]] = number[at_least]
    lasting = np.where(at_least, size, held * (1.0 - age / (hold_points + 1.0)))
    unknown = np.isnan(size)
    return np.where(above | unknown, size, 0.0), np.where(unknown, np.nan, lasting)
