"""Tells news from echo: after a surprise only a larger one counts for a while, so that one event is said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streams.operators.detect.anomaly.places import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.places import Where
    from streams.operators.detect.table import Table

    Singles = NDArray[np.float32]


def define(table: Table, width: int) -> None:
    """The largest of late, and the number of its point."""
    table.define("anomaly_peak", np.float32, 0.0, width)
    table.define("anomaly_peak_at", np.int32, 0, width)


def news(
    table: Table, cells: NDArray[np.intp], at: Where, size: Singles, number: NDArray[np.int32], hold_points: int
) -> tuple[NDArray[np.intp], Singles]:
    """Which of `size` (m,) are above 0 and above the peak of the last `hold_points`; and the peak (m,), which falls to 0 meanwhile.

    NaN is no news, and leaves the peak as it was.
    """
    peaks = table["anomaly_peak"].reshape(-1)
    since = table["anomaly_peak_at"].reshape(-1)
    age = number - rows(since, at)
    lasting: Singles = 1.0 - age * np.float32(1.0 / (hold_points + 1.0))
    held = rows(peaks, at) * (age <= hold_points)
    lasting *= held
    # the same size again is no news, but the peak is as young as it
    least = np.maximum(held, np.float32(1e-30))
    at_least = np.flatnonzero(size >= least)
    if len(at_least):
        there, peak = cells[at_least], size[at_least]
        peaks[there], since[there], lasting[at_least] = peak, number[at_least], peak
        at_least = at_least[peak > held[at_least]]
    return at_least, lasting
