"""Tells news from echo: after a surprise only a larger one counts for a while, so that one event is said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streams.operators.detect.anomaly.places import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.places import Where
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]


def define(table: Table, width: int) -> None:
    """The largest of late, and the number of its point."""
    table.define("anomaly_peak", np.float32, 0.0, width)
    table.define("anomaly_peak_at", np.int32, 0, width)


def news(table: Table, at: Where, size: Floats, number: NDArray[np.int64], hold_points: int) -> tuple[Floats, Floats]:
    """`size` (m,) where it is above the peak of the last `hold_points`, else 0; and the peak, which falls to 0 meanwhile. NaN stays NaN."""
    peaks = table["anomaly_peak"].reshape(-1)
    since = table["anomaly_peak_at"].reshape(-1)
    held = rows(peaks, at).astype(np.float64)
    age = number - rows(since, at)
    held *= age <= hold_points
    # what equals the peak is kept in single precision: the same size again is no news
    rounded = size.astype(np.float32)
    at_least = rounded >= held
    lasting = held * (1.0 - age / (hold_points + 1.0))
    unknown = size != size
    lasting[unknown] = np.nan
    news = size * ((rounded > held) | unknown)
    lasting[at_least] = size[at_least]
    peaks[at] = np.where(at_least, rounded, rows(peaks, at))
    since[at] = np.where(at_least, number, rows(since, at))
    return news, lasting
