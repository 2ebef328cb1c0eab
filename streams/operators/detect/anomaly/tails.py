"""How rarely a series' statistic was as large as now, by a histogram of its own past that forgets; six statistics of a series at once.

One pseudo-observation with a heavy tail stands beside what was counted: twice the largest ever seen surprises more than the largest.
Only what lies beyond the usual bins of its series is looked at closely; the rest is no surprise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly.places import planes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.table import Table

    Singles = NDArray[np.float32]

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
MOST: Final = 1e12
"""What a statistic is at most: the largest that single precision is asked to hold."""

_LOWEST: Final = int(np.array([0.25], np.float32).view(np.int32)[0] >> 22)
"""The sign, the exponent and the first bit of the fraction of a single-precision number count half octaves."""
_BIN: Final = np.arange(BINS)
_END: Final = np.append(((_BIN[:-1] + 1 + _LOWEST) << 22).astype(np.int32).view(np.float32), np.float32(np.inf))
"""Where each bin ends; the last does not."""


def define(table: Table, width: int, kinds: int) -> None:
    """One histogram for each of the `kinds` statistics of a series, and where the highest bin ends that is usual."""
    table.define("anomaly_tail", np.uint16, 0, width, kinds, BINS)
    table.define_planes("anomaly_quiet", np.float32, float(_END[0]), kinds, width)


def surprise(table: Table, given: Given, statistics: Singles) -> Singles:
    """Decades (kinds, m) of `statistics` (kinds, m), from 0 to MOST and without a unit, 0 where it is usual; then they are counted."""
    kinds, m = statistics.shape
    counts = table["anomaly_tail"].reshape(-1, BINS)
    out = np.zeros(statistics.shape, np.float32)
    odd = np.flatnonzero(statistics >= planes(table, "anomaly_quiet", given.at))
    if len(odd):
        kind = odd // m
        cells = given.cells.take(odd - kind * m)
        size = statistics.reshape(-1).take(odd)
        which = _bins(size)
        past = counts.take(cells * kinds + kind, axis=0)
        above = ((which[:, None] <= _BIN) * past).sum(axis=1)
        rare = np.minimum(np.maximum(size.astype(np.float64), 1e-9) ** -TAIL_POWER, 1.0)
        decades = np.log10((past.sum(axis=1) + 1.0) / (above + rare))
        out.reshape(-1)[odd] = decades
        usual = np.flatnonzero(decades < QUIET)
        quiet = table["anomaly_quiet"].reshape(kinds, -1)
        quiet[kind[usual], cells[usual]] = _END[which[usual]]

    due = (given.number & (EVERY - 1)) == 0
    if due.any():
        those = np.flatnonzero(due)
        cells, sizes = (given.cells, statistics) if len(those) == m else (given.cells[those], statistics[:, those])
        flat = counts.reshape(-1)
        at = _bins(sizes) + cells * (kinds * BINS) + (np.arange(kinds) * BINS)[:, None]
        flat[at] = flat.take(at, mode="clip") + 1
        counted = given.number[those] // EVERY + 1
        full = (counted >= FULL) & (counted % (FULL // 2) == 0)
        if full.any():
            old = cells[full]
            counts.reshape(-1, kinds, BINS)[old] //= 2
            # what was usual long ago need not be so any more
            table["anomaly_quiet"].reshape(kinds, -1)[:, old] = _END[0]
    return out


def _bins(size: Singles) -> NDArray[np.int32]:
    """Which bin each is in."""
    found: NDArray[np.int32] = (size.view(np.int32) >> 22) - np.int32(_LOWEST)
    np.maximum(found, np.int32(0), out=found)
    np.minimum(found, np.int32(BINS - 1), out=found)
    return found
