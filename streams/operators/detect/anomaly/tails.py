"""How rarely a series' statistic was as large as now, by a histogram of its own past that forgets.

One pseudo-observation with a heavy tail stands beside what was seen, so that twice the largest ever seen surprises more than the largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

BINS: Final = 16
LEAST: Final = 0.25
"""Upper border of the lowest bin; each bin is wider by the square root of 2, so the highest begins at 32."""
FULL: Final = 4096
"""Counts are halved when so many were counted: the past is forgotten over a few thousand points."""
TAIL_POWER: Final = 3.0
"""Of the pseudo-observation: being twice as far off is taken to be eight times as rare where nothing else is known."""
_TOP: Final = np.arange(BINS)[None, None, :]


def define(table: Table, name: str, width: int, statistics: int) -> None:
    """One histogram for each statistic of a series."""
    table.define(f"anomaly_tail_{name}", np.uint16, 0, width, statistics, BINS)


def surprise(table: Table, name: str, cells: NDArray[np.intp], statistic: Floats) -> Floats:
    """Decades (k, m) of `statistic` (k, m), 0 or more and without a unit; then it joins its histogram."""
    counts = table[f"anomaly_tail_{name}"]
    kinds = counts.shape[-2]
    counts = counts.reshape(-1, kinds, BINS)
    past = counts[cells]
    size = np.clip(statistic.T, 1e-9, 1e12)
    position = np.clip(2.0 * np.log2(size / LEAST) + 1.0, 0.0, BINS - 1e-6)
    bin_ = position.astype(np.intp)
    within = position - bin_
    at = bin_[:, :, None]
    above = np.where(at < _TOP, past, 0).sum(axis=2, dtype=np.float64)
    mine = np.take_along_axis(past, at, axis=2)[:, :, 0]
    # the highest bin is open: nothing is known of what lies where in it
    above += np.where(bin_ == BINS - 1, 1.0, 1.0 - within) * mine
    total = past.sum(axis=2, dtype=np.float64)
    decades = np.log10((total + 1.0) / (above + np.minimum(size**-TAIL_POWER, 1.0)))
    place = (np.arange(len(cells))[:, None], np.arange(kinds)[None, :])
    counts[cells[:, None], place[1], bin_] = mine + 1
    full = total >= FULL
    if full.any():
        i, kind = np.nonzero(full)
        counts[cells[i], kind] //= 2
    found: Floats = decades.T
    return found
