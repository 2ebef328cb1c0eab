"""Distance to the nearest value that was seen before, for many series at once.

What was seen is kept as at most MOST values a series, sorted, none closer to another than NEAR scales: a binary search finds the nearest.
The scale of a series is the geometric mean of its range and of its mean step from one point to the next. Smooth series are thereby judged
more strictly than jumpy ones, and one spike in the past does not blind the detector as the range alone would. A distance inside
of the range counts half, and the more points were seen without coming near, the more a distance says. What was not met for one to two
generations is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly.places import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.places import Where
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]
    Cells = NDArray[np.intp]

MOST: Final = 64
"""Values kept of a series, the last place being empty always; when full, the one goes whose neighbours are closest to each other."""
NEAR: Final = 0.04
"""In scales: what is closer to a kept value is the same."""
FINEST: Final = 0.01
"""As a share of the range: what is closer to a kept value is the same, too. With all places taken evenly nothing is put in any more."""
INSIDE: Final = 0.5
"""Weight of a distance inside of the range of what was seen: a gap is less odd than a record."""
GROWTH: Final = 0.3
"""Power of the number of points that a distance is weighted by, 1 at 1,000 points."""
STEP_WEIGHT: Final = 0.002
"""Of the newest step in the mean step."""
GENERATION: Final = 8640
"""Points of a generation: a day at one point in 10 s."""

_FACTS: Final = 5
_ORIGIN, _BEFORE, _STEP, _COUNT, _USED = range(_FACTS)
_PROBES: Final = (32, 16, 8, 4, 2, 1)
_PLACES: Final = np.arange(MOST)
_ROUNDING: Final = 1.2e-7
_FURTHEST: Final = 1e38
"""Single precision ends at 3e38. What is so far off is far off."""
_MORE: Final = (np.arange(1, 40_001) / 1000.0) ** GROWTH
"""The weight by number of points; it stays as it is from 40,000 on."""


def define(table: Table, name: str, width: int) -> None:
    """Kept values as distances from the first one, the generation in which each was met last, and five facts of a series."""
    table.define(f"anomaly_{name}_kept", np.float32, np.inf, width, MOST)
    table.define(f"anomaly_{name}_met", np.uint8, 0, width, MOST)
    table.define(f"anomaly_{name}_facts", np.float64, 0.0, width, _FACTS)


def distance(table: Table, name: str, where: Where, cells: Cells, values: Floats, least: Floats) -> Floats:
    """Weighted distances (m,) of `values` in scales; then they are known. `least` (m,), above 0: no range and no step is taken as less.

    `where` is `places.where(cells)`. 0 for a first value.
    """
    kept = table[f"anomaly_{name}_kept"].reshape(-1, MOST)
    met = table[f"anomaly_{name}_met"].reshape(-1, MOST)
    facts = table[f"anomaly_{name}_facts"].reshape(-1, _FACTS)
    known = rows(facts, where).T.copy()
    count = known[_COUNT].astype(np.intp)
    first = count == 0
    some_first = bool(first.any())
    if some_first:
        known[_ORIGIN, first] = values[first]
        known[_BEFORE, first] = values[first]
    generation = count // GENERATION
    turned = (count == generation * GENERATION) & ~first
    if turned.any():
        known[_USED, turned] = _forget(kept, met, cells[turned], generation[turned].astype(np.uint8))

    value = np.minimum(np.maximum(values - known[_ORIGIN], -_FURTHEST), _FURTHEST).astype(np.float32)
    flat = kept.reshape(-1)
    base = cells * MOST
    at = base.copy()
    for probe in _PROBES:
        at += (flat.take(at + (probe - 1), mode="clip") < value) * probe
    right = flat.take(at, mode="clip") - value
    left = value - flat.take(at - 1, mode="clip")
    left[at == base] = np.inf
    low = flat.take(base, mode="clip")
    used = known[_USED].astype(np.intp)
    high = flat.take(base + np.maximum(used - 1, 0), mode="clip")
    gap = np.minimum(left, right).astype(np.float64)
    # what single precision rounds off is no distance
    gap -= np.minimum(np.abs(value) * _ROUNDING, gap)
    if some_first:
        low[first] = high[first] = gap[first] = 0.0
    # range and step may be so small that their product is none
    reach = np.maximum(high - low, least)
    scale = np.sqrt(reach) * np.sqrt(np.maximum(known[_STEP], least))
    found: Floats = gap / scale
    far = gap > np.maximum(scale * NEAR, reach * FINEST)
    far |= first
    found *= _MORE.take(count, mode="clip")
    found *= 1.0 - ((low < value) & (value < high)) * (1.0 - INSIDE)

    those = np.flatnonzero(far)
    now = generation.astype(np.uint8)
    if len(those):
        known[_USED, those] = _keep(kept, met, cells[those], at[those] - base[those], value[those], used[those], now[those])
    if len(those) < len(cells):
        close = at - (left < right)
        last = met.reshape(-1)
        stale = np.flatnonzero((last.take(close, mode="clip") != now) & ~far)
        last[close[stale]] = now[stale]
    weight = np.maximum(1.0 / np.maximum(count, 1), STEP_WEIGHT)
    known[_STEP] += weight * (np.abs(values - known[_BEFORE]) - known[_STEP])
    known[_BEFORE] = values
    known[_COUNT] += 1.0
    facts[where] = known.T
    return found


def _keep(
    kept: NDArray[np.float32],
    met: NDArray[np.uint8],
    cells: Cells,
    place: Cells,
    value: NDArray[np.float32],
    used: Cells,
    generation: NDArray[np.uint8],
) -> Cells:
    """Puts values at their places; how many each series has now."""
    source = (cells * MOST)[:, None] + (_PLACES - (place[:, None] < _PLACES))
    values = kept.reshape(-1).take(source, mode="clip")
    when = met.reshape(-1).take(source, mode="clip")
    here = np.arange(len(cells))
    values[here, place] = value
    when[here, place] = generation
    now = used + 1
    full = np.flatnonzero(now == MOST)
    if len(full):
        # the ends stay: they are the range
        drop = (values[full, 2:] - values[full, :-2]).argmin(axis=1) + 1
        source = (full * MOST)[:, None] + np.minimum(_PLACES + (drop[:, None] <= _PLACES), MOST - 1)
        values[full] = values.reshape(-1).take(source)
        when[full] = when.reshape(-1).take(source)
        values[full, -1] = np.inf
        now[full] -= 1
    kept[cells] = values
    met[cells] = when
    return now


def _forget(kept: NDArray[np.float32], met: NDArray[np.uint8], cells: Cells, generation: NDArray[np.uint8]) -> Cells:
    """Drops what was met neither in the last generation nor in the one that begins; how many are left, at least one."""
    values = kept[cells]
    when = met[cells]
    old = (generation[:, None] - when) > 1
    old[old.all(axis=1), 0] = False
    values[old] = np.inf
    order = np.argsort(values, axis=1, kind="stable")
    values = np.take_along_axis(values, order, axis=1)
    kept[cells] = values
    met[cells] = np.take_along_axis(when, order, axis=1)
    left: Cells = np.isfinite(values).sum(axis=1)
    return left
