"""Distance to the nearest value that was seen before, for many series at once.

What was seen is kept as at most MOST values a series, sorted, none closer to another than NEAR scales: a binary search finds the nearest.
The scale of a series is the geometric mean of its range and of its mean step from one point to the next. Smooth series are thereby judged
more strictly than jumpy ones, and one spike in the past does not blind the detector as the range alone would. A distance inside
of the range counts half, and the more points were seen without coming near, the more a distance says. What was not met for one to two
generations is forgotten.

Most points of most series come where the series always is. So each series has a *sure* interval, the longest run of kept values that were
all met in this generation and lie so close together that all between them is near to one: what falls in there is known without a search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly.places import keep, planes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.places import Where
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]
    Singles = NDArray[np.float32]
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
LEAST: Final = 1e-9
"""Least range and step as a share of the level: above the rounding of a double, below what any sensor tells apart."""
TINY: Final = 1e-140
REFRESH: Final = 64
"""Every so manieth point of a series is searched for in any case, and its sure interval made anew: scales change slowly."""
GROWN: Final = 40_000
"""The weight by number of points stays as it is from here on."""
SURE: Final = 0.055
"""In scales, weighted by where it is: what is sure is at most so far from a kept value."""
KNOWN: Final = SURE * (GROWN / 1000.0) ** GROWTH
"""Weighted distance that what is sure has at most."""

_PROBES: Final = (32, 16, 8, 4, 2, 1)
_PLACES: Final = np.arange(MOST, dtype=np.int8)
_ROUNDING: Final = 1.2e-7
_FURTHEST: Final = 1e38
"""Single precision ends at 3e38. What is so far off is far off."""
_MORE: Final = (np.arange(1, GROWN + 1) / 1000.0) ** GROWTH


class _Asked(NamedTuple):
    """What is searched for: of k series, all (k,). `number` is how many points were before, `value` the distance from the first one."""

    cells: Cells
    value: Singles
    number: NDArray[np.int32]
    step: Floats
    least: Floats


def define(table: Table, name: str, width: int) -> None:
    """Kept values as distances from the first one, how many, the generation in which each was met last, the sure interval; and the
    first value, the last one and the mean step."""
    table.define(f"anomaly_{name}_kept", np.float32, np.inf, width, MOST)
    table.define(f"anomaly_{name}_met", np.uint8, 0, width, MOST)
    table.define(f"anomaly_{name}_used", np.uint8, 0, width)
    table.define_planes(f"anomaly_{name}_sure", np.float32, np.nan, 2, width)
    table.define_planes(f"anomaly_{name}_facts", np.float64, 0.0, 3, width)


def distance(
    table: Table,
    name: str,
    where: Where,
    cells: Cells,
    values: Floats,
    levels: Floats,
    number: NDArray[np.int32],
    closely: NDArray[np.bool_],
) -> Floats:
    """Weighted distances (m,) of `values` in scales; then they are known. 0 for a first value, and for what is sure, which lies within
    KNOWN, unless it is to be told `closely` (m,).

    `where` is `places.where(cells)`, `number` how many values of the series were before; no range and no step is taken as less than the
    rounding of `levels`.
    """
    facts: Floats = planes(table, f"anomaly_{name}_facts", where)
    origin, before, step = facts
    youngest = int(number.min())
    if youngest == 0:
        first = number == 0
        origin[first] = before[first] = values[first]
    away = values - origin
    np.minimum(away, _FURTHEST, out=away)
    value: Singles = np.maximum(away, -_FURTHEST, out=away).astype(np.float32)
    sure = planes(table, f"anomaly_{name}_sure", where)
    search = (number & (REFRESH - 1)) == 0
    search |= closely
    search |= ~((value >= sure[0]) & (value <= sure[1]))
    found = np.zeros(len(values))
    those = np.flatnonzero(search)
    if len(those):
        least = np.maximum(np.abs(levels[those]) * LEAST, TINY)
        found[those] = _search(table, name, _Asked(cells[those], value[those], number[those], step[those], least))
    moved = np.abs(np.subtract(values, before, out=away), out=away)
    moved -= step
    young = youngest < 1.0 / STEP_WEIGHT
    moved *= np.maximum(1.0 / np.maximum(number, 1), STEP_WEIGHT) if young else STEP_WEIGHT
    step += moved
    before[:] = values
    keep(table, f"anomaly_{name}_facts", where, facts)
    return found


def _search(table: Table, name: str, asked: _Asked) -> Floats:
    """Weighted distances (k,) to the nearest kept value; what is new is kept, and what is near was met."""
    kept = table[f"anomaly_{name}_kept"].reshape(-1, MOST)
    met = table[f"anomaly_{name}_met"].reshape(-1, MOST)
    held = table[f"anomaly_{name}_used"].reshape(-1)
    cells, value, number = asked.cells, asked.value, asked.number
    first = number == 0
    some_first = bool(first.any())
    used = held.take(cells).astype(np.intp)
    generation = number // GENERATION
    now = generation.astype(np.uint8)
    turned = (number == generation * GENERATION) & ~first
    if turned.any():
        used[turned] = _forget(kept, met, cells[turned], now[turned])
        held[cells[turned]] = used[turned]

    flat = kept.reshape(-1)
    base = cells * MOST
    at = base.copy()
    for probe in _PROBES:
        at += (flat.take(at + (probe - 1), mode="clip") < value) * probe
    right = flat.take(at, mode="clip") - value
    left = value - flat.take(at - 1, mode="clip")
    left[at == base] = np.inf
    low = flat.take(base, mode="clip")
    high = flat.take(base + np.maximum(used - 1, 0), mode="clip")
    gap = np.minimum(left, right).astype(np.float64)
    # what single precision rounds off is no distance
    gap -= np.minimum(np.abs(value) * _ROUNDING, gap)
    if some_first:
        low[first] = high[first] = gap[first] = 0.0
    # range and step may be so small that their product is none
    reach = np.maximum(high - low, asked.least)
    scale = np.sqrt(reach) * np.sqrt(np.maximum(asked.step, asked.least))
    found: Floats = gap / scale
    near = np.maximum(scale * NEAR, reach * FINEST)
    far = gap > near
    far |= first
    found *= _MORE.take(number, mode="clip")
    found *= 1.0 - ((low < value) & (value < high)) * (1.0 - INSIDE)

    those = np.flatnonzero(far)
    if len(those):
        held[cells[those]] = _put(kept, met, cells[those], at[those] - base[those], value[those], used[those], now[those])
    if len(those) < len(cells):
        close = at - (left < right)
        last = met.reshape(-1)
        stale = np.flatnonzero((last.take(close, mode="clip") != now) & ~far)
        last[close[stale]] = now[stale]
    renewed = np.flatnonzero(((number & (REFRESH - 1)) == 0) | turned)
    if len(renewed):
        some = cells[renewed]
        furthest = SURE * scale[renewed]
        close = np.minimum(near[renewed], furthest / INSIDE)
        here = met.take(some, axis=0) == now[renewed, None]
        sure = _sure(kept.take(some, axis=0), here, np.minimum(near[renewed], furthest), close)
        table[f"anomaly_{name}_sure"].reshape(2, -1)[:, some] = sure
    return found


def _sure(kept: Singles, met: NDArray[np.bool_], near: Floats, close: Floats) -> Singles:
    """The sure intervals (2, k) of k series with `kept` and `met` (k, MOST); NaN for none.

    A value is near to a kept one within `near` (k,), and within `close` (k,) where it lies between two.
    """
    near = np.minimum(near, _FURTHEST).astype(np.float32)
    met = met & np.isfinite(kept)
    linked = np.zeros(kept.shape, np.bool_)
    with np.errstate(invalid="ignore", over="ignore"):  # places that are not taken hold infinity, and were not met
        linked[:, 1:] = kept[:, 1:] - kept[:, :-1] <= (2.0 * np.minimum(close, _FURTHEST)).astype(np.float32)[:, None]
    linked[:, 1:] &= met[:, 1:] & met[:, :-1]
    start = np.maximum.accumulate(_PLACES * ~linked, axis=1)
    # the longest run, of runs as long as one another the first; a value that was not met in this generation is not even one of one
    length = (_PLACES - start + np.int8(1)) * met
    end = length.argmax(axis=1)
    here = np.arange(len(kept))
    sure = np.stack((kept[here, start[here, end]] - near, kept[here, end] + near))
    sure[:, ~met[here, end]] = np.nan
    return sure


def _put(
    kept: NDArray[np.float32],
    met: NDArray[np.uint8],
    cells: Cells,
    place: Cells,
    value: NDArray[np.float32],
    used: Cells,
    generation: NDArray[np.uint8],
) -> Cells:
    """Puts values at their places; how many each series has now."""
    after = place.astype(np.int8)[:, None] < _PLACES
    values = _moved(kept.take(cells, axis=0), after)
    when = _moved(met.take(cells, axis=0), after)
    here = np.arange(len(cells))
    values[here, place] = value
    when[here, place] = generation
    now = used + 1
    full = np.flatnonzero(now == MOST)
    if len(full):
        most, last = values[full], when[full]
        # the ends stay: they are the range
        drop = (most[:, 2:] - most[:, :-2]).argmin(axis=1) + 1
        before = drop.astype(np.int8)[:, None] > _PLACES[:-1]
        values[full, :-1] = np.where(before, most[:, :-1], most[:, 1:])
        when[full, :-1] = np.where(before, last[:, :-1], last[:, 1:])
        values[full, -1] = np.inf
        now[full] -= 1
    kept[cells] = values
    met[cells] = when
    return now


def _moved(given: NDArray[Any], after: NDArray[np.bool_]) -> NDArray[Any]:
    """`given` (k, MOST), each one place further where `after`, which is nowhere the first."""
    before = np.empty_like(given)
    before.reshape(-1)[1:] = given.reshape(-1)[:-1]
    return np.where(after, before, given)


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
