"""How rarely a series' statistic was as large as now, by a histogram of its own past that forgets.

One pseudo-observation with a heavy tail stands beside what was counted: twice the largest ever seen surprises more than the largest.
Only what lies beyond the usual bins of its series is looked at closely; the rest is no surprise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly.places import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

BINS: Final = 16
"""Two to an octave: the lowest ends at 0.375, the highest begins at 48."""
EVERY: Final = 4
"""Each series' every so manieth point is counted."""
FULL: Final = 1024
"""Counts are halved when so many were counted: the past is forgotten over a few thousand points."""
TAIL_POWER: Final = 3.0
"""Of the pseudo-observation: being twice as far off is taken to be eight times as rare where nothing else is known."""
QUIET: Final = 1.5
"""Decades that are usual: about one point in 30."""

_LOWEST: Final = int(np.array([0.25], np.float32).view(np.int32)[0] >> 22)
"""The sign, the exponent and the first bit of the fraction of a single-precision number count half octaves."""
_BIN: Final = np.arange(BINS)


def define(table: Table, name: str, width: int, statistics: int) -> None:
    """One histogram for each statistic of a series, and the highest bin that is usual."""
    table.define(f"anomaly_{name}_tail", np.uint16, 0, width, statistics, BINS)
    table.define(f"anomaly_{name}_quiet", np.uint8, 0, width, statistics)


def surprise(table: Table, name: str, given: Given, statistic: Floats) -> Floats:
    """Decades (k, m) of `statistic` (k, m), 0 or more and without a unit, 0 where it is usual; then it joins its histogram."""
    kinds = len(statistic)
    counts = table[f"anomaly_{name}_tail"].reshape(-1, BINS)
    quiet = table[f"anomaly_{name}_quiet"].reshape(-1, kinds)
    size = np.minimum(statistic, 1e12).astype(np.float32)
    bins = (size.view(np.int32) >> 22) - _LOWEST
    np.maximum(bins, 0, out=bins)
    np.minimum(bins, BINS - 1, out=bins)
    out = np.zeros(statistic.shape)
    kind, i = np.nonzero(bins > rows(quiet, given.at).T)
    if len(i):
        which = bins[kind, i]
        past = counts.take(given.cells[i] * kinds + kind, axis=0)
        above = ((which[:, None] <= _BIN) * past).sum(axis=1)
        rare = np.minimum(np.maximum(size[kind, i].astype(np.float64), 1e-9) ** -TAIL_POWER, 1.0)
        decades = np.log10((past.sum(axis=1) + 1.0) / (above + rare))
        out[kind, i] = decades
        usual = decades < QUIET
        quiet[given.cells[i[usual]], kind[usual]] = which[usual]

    due = (given.number & (EVERY - 1)) == 0
    if due.any():
        cells, those = (given.cells, bins) if due.all() else (given.cells[due], bins[:, due])
        flat = counts.reshape(-1)
        at = cells * (kinds * BINS) + (np.arange(kinds) * BINS)[:, None] + those
        flat[at] = flat.take(at, mode="clip") + 1
        counted = given.number[due] // EVERY + 1
        full = (counted >= FULL) & (counted % (FULL // 2) == 0)
        if full.any():
            old = cells[full]
            counts.reshape(-1, kinds, BINS)[old] //= 2
            # what was usual long ago need not be so any more
            quiet[old] = 0
    return out
