"""Novelty: is this value, or the way it was reached, one that the series has not shown before? And how rarely does it show anything new?

A series is seen through several *views*: its value, running means of several lengths, pairs of them, its last change. Each view is cut into
cells; a cell is hashed into a bitmap of what was seen. To enter a cell never seen surprises by the rarity of new cells in that view of that
series: log10(points / new cells). Surprises of all views are added by their weights. Cells grow beyond the range of the first
points, so that a spike twice as high as the last is not a hundred new levels. Bitmaps come in two generations, the older of which is
emptied every GENERATION points: what was not seen for one to two generations is new again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]
    Cells = NDArray[np.intp]


class View(NamedTuple):
    """Features that together are one cell, each with the number of cells over its usual range; and the weight of its surprise."""

    parts: tuple[tuple[str, int], ...]
    weight: float


MEANS: Final = (0.3, 0.1, 0.05, 0.03, 0.01, 0.005, 0.003)
"""Weights of the newest point in the running means: memories of about 3 to 300 points."""

VIEWS: Final = (
    View((("value", 16),), 1.0),
    View((("mean 0.05", 6),), 1.0),
    View((("from mean 0.01", 9),), 1.0),
    View((("mean 0.3", 5), ("mean 0.03", 5)), 1.0),
    View((("mean 0.3", 8), ("change", 8)), 1.0),
    View((("mean 0.1", 9),), 0.5),
    View((("mean 0.1", 24),), 0.5),
    View((("mean 0.005", 24),), 0.5),
    View((("mean 0.003", 16),), 0.5),
    View((("mean 0.03", 11), ("mean 0.003", 11)), 0.5),
)
"""Chosen on the benchmark's corpus (`bench/nab.py` says what that means for its figures): many views, none of which matters much alone."""

LIMIT: Final = 3.46
"""Decades, summed over the views, that score 0.5."""

LEARN: Final = 128
"""Points from which a series' usual range is learnt; they are kept until then, in the memory of the bitmaps."""
EDGE: Final = 0.05
"""Share of the first points on either side that lies outside of the usual range."""
GROWTH: Final = 0.3
"""Each cell beyond the usual range is wider by this share than the one before."""
GENERATION: Final = 8640
"""Points of a generation: one day at one point in 10 s."""
BITS: Final = {1: 128, 2: 512}
"""Of one bitmap, by the number of features of its view."""
MEMORY: Final = 2000
"""Points over which the rate of new cells is taken."""
EARLY: Final = 100.0
"""Points without anything new that each view is credited with at the start, so that the first new cells do surprise."""
_RARE: Final = 0.25
"""New cells that each view is charged with: none so far does not mean never."""

_LEAST_RANGE: Final = 1e-9
"""Least half range as a share of the level: above the rounding of a double, below what any sensor tells apart."""
_LEAST: Final = 1e-140
_TIE: Final = 1.7e-4
"""Shifts cell borders off the round numbers that readings are quantised to, so that rounding cannot put one value in two cells."""

_FEATURES: Final = ("value", *(f"mean {a}" for a in MEANS), "change", "from mean 0.01")
_PARTS: Final = tuple(part for view in VIEWS for part in view.parts)
_FEATURE: Final = np.array([_FEATURES.index(name) for name, _ in _PARTS])
_HALVES: Final = np.array([levels / 2 for _, levels in _PARTS])[:, None]
_SHIFT: Final = np.array([(0.5 if levels % 2 else 0.0) + _TIE for _, levels in _PARTS])[:, None]
_START: Final = np.cumsum([0, *(len(view.parts) for view in VIEWS)])[:-1]
_WEIGHT: Final = np.array([view.weight for view in VIEWS])
_ALPHA: Final = np.array(MEANS)
_FROM: Final = MEANS.index(0.01)
_HASH: Final = np.array([(0x9E3779B97F4A7C15 * (2 * k * k + 1)) % 2**64 | 1 for k in range(len(_PARTS))], np.uint64)[:, None]
_VIEW_BITS: Final = np.array([BITS[len(view.parts)] for view in VIEWS])
_TOP: Final = (64 - np.log2(_VIEW_BITS)).astype(np.uint64)[:, None]
_BYTES: Final = (_VIEW_BITS // 8)[:, None]
_GENERATION_BYTES: Final = int(_BYTES.sum())
_ROW_BYTES: Final = 2 * _GENERATION_BYTES
_OFFSET: Final = np.cumsum(_BYTES, axis=0) - _BYTES
_BIT: Final = (1 << np.arange(8)).astype(np.uint8)
_FADE: Final = 1.0 - 1.0 / MEMORY
_FADE_LOG: Final = math.log(_FADE)


def define(table: Table, width: int) -> None:
    """Bitmaps (generation, view), running means with the last value, centre and half range, and each view's rate of new cells."""
    table.define("anomaly_seen", np.uint8, 0, width, _ROW_BYTES)
    table.define("anomaly_means", np.float64, 0.0, width, len(MEANS) + 1)
    table.define("anomaly_range", np.float64, 0.0, width, 2)
    table.define("anomaly_new", np.float32, 0.0, width, len(VIEWS))
    table.define("anomaly_new_at", np.int32, 0, width, len(VIEWS))


def surprise(table: Table, given: Given, options: Options) -> Floats:
    """Decades (m,), 0 where nothing is new; NaN in the warm-up, which is at least LEARN points."""
    cells, values, number = given.cells, given.values, given.number
    out = np.full(len(cells), np.nan)
    learning = number < LEARN
    if not learning.any():
        _judge(table, cells, values, number, out, options.warm_up)
        return out
    those = np.flatnonzero(learning)
    _collect(table, cells[those], values[those], number[those])
    ready = those[number[those] == LEARN - 1]
    if len(ready):
        _learn(table, cells[ready], options)
    rest = np.flatnonzero(~learning)
    if len(rest):
        found = np.full(len(rest), np.nan)
        _judge(table, cells[rest], values[rest], number[rest], found, options.warm_up)
        out[rest] = found
    return out


def _collect(table: Table, cells: Cells, values: Floats, number: NDArray[np.int64]) -> None:
    """Keeps the first points, as distances from the very first, until there are enough to know the usual range."""
    kept = table["anomaly_seen"].reshape(-1, _ROW_BYTES).view(np.float32)
    centre = table["anomaly_range"].reshape(-1, 2)
    new = number == 0
    centre[cells[new], 0] = values[new]
    away = values - centre[cells, 0]
    # single precision ends at 3e38: the distances are kept as shares of the largest so far
    unit = centre[cells, 1]
    grown = np.abs(away) > unit
    if grown.any():
        some = cells[grown]
        wider = np.abs(away[grown])
        kept[some, :LEARN] *= (unit[grown] / wider).astype(np.float32)[:, None]
        centre[some, 1] = wider
        unit = centre[cells, 1]
    kept[cells, number] = np.divide(away, unit, out=np.zeros(len(cells)), where=unit > 0)


def _learn(table: Table, cells: Cells, options: Options) -> None:
    """Learns the usual range from the points that were kept, and goes through them again to learn what there was."""
    everything = table["anomaly_seen"].reshape(-1, _ROW_BYTES)
    place = table["anomaly_range"].reshape(-1, 2)
    first, unit = place[cells, 0], place[cells, 1]
    points = first[:, None] + everything.view(np.float32)[cells, :LEARN].astype(np.float64) * unit[:, None]
    everything[cells] = 0
    ordered = np.sort(points, axis=1)
    edge = int(EDGE * (LEARN - 1))
    low, high = ordered[:, edge], ordered[:, LEARN - 1 - edge]
    flat = high <= low
    low, high = np.where(flat, ordered[:, 0], low), np.where(flat, ordered[:, -1], high)
    place[cells, 0] = (low + high) / 2
    place[cells, 1] = np.maximum((high - low) / 2, np.maximum(_LEAST_RANGE * np.maximum(np.abs(low), np.abs(high)), _LEAST))
    unheard = np.empty(len(cells))
    for k in range(LEARN):
        _judge(table, cells, points[:, k], np.full(len(cells), k, np.int64), unheard, options.warm_up)


def _judge(table: Table, cells: Cells, values: Floats, number: NDArray[np.int64], out: Floats, warm_up: int) -> None:
    """Writes the surprise of each value into `out` where its series is past the warm-up; then the value is known."""
    where = _cells_of(table, cells, values, number)
    seen = table["anomaly_seen"].reshape(-1)
    generation = (number // GENERATION) & 1
    turned = (number % GENERATION == 0) & (number > 0)
    if turned.any():
        bitmaps = table["anomaly_seen"].reshape(-1, 2, _GENERATION_BYTES)
        bitmaps[cells[turned], generation[turned]] = 0
    byte = (where >> 3) + cells * _ROW_BYTES + _OFFSET
    bit = _BIT[where & 7]
    mine = byte + generation * _GENERATION_BYTES
    theirs = byte + (1 - generation) * _GENERATION_BYTES
    have = seen[mine]
    lacking = (have & bit) == 0
    if not lacking.any():
        out[number >= warm_up] = 0.0
        return
    view, i = np.nonzero(lacking)
    at = mine[view, i]
    seen[at] = have[view, i] | bit[view, i]
    new = ((seen[theirs[view, i]] & bit[view, i]) == 0) & (number[i] >= warm_up)
    out[number >= warm_up] = 0.0
    if new.any():
        view, i = view[new], i[new]
        out += np.bincount(i, _rarity(table, cells[i], view, number[i] - warm_up) * _WEIGHT[view], len(cells))


def _cells_of(table: Table, cells: Cells, values: Floats, number: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place in its bitmap (view, m) of each view of each value; running means take the value in."""
    state = table["anomaly_means"].reshape(-1, len(MEANS) + 1)
    place = table["anomaly_range"].reshape(-1, 2)[cells]
    old = state[cells]
    young = number == 0
    if young.any():
        old[young] = values[young, None]
    # a young series' mean is that of all its points
    weight = np.maximum(_ALPHA, 1.0 / (number[:, None] + 1.0)) if (number < 1.0 / MEANS[-1]).any() else _ALPHA
    new = np.empty_like(old)
    new[:, :-1] = old[:, :-1] + weight * (values[:, None] - old[:, :-1])
    new[:, -1] = values
    state[cells] = new
    features = np.empty((len(_FEATURES), len(cells)))
    centre = place[:, 0]
    features[0] = values - centre
    features[1:-2] = new[:, :-1].T - centre
    features[-2] = values - old[:, -1]
    features[-1] = values - old[:, _FROM]
    features /= place[:, 1]
    level = features[_FEATURE] * _HALVES
    size = np.abs(level)
    beyond = size > _HALVES
    if beyond.any():
        part = np.nonzero(beyond)[0]
        edge = _HALVES[part, 0]
        further = edge + np.log1p((size[beyond] - edge) * GROWTH) / math.log1p(GROWTH)
        level[beyond] = np.copysign(further, level[beyond])
    level += _SHIFT
    mixed = np.floor(level, out=level).astype(np.int64).view(np.uint64) * _HASH
    together = np.add.reduceat(mixed, _START, axis=0)
    places: NDArray[np.int64] = (together >> _TOP).astype(np.int64)
    return places


def _rarity(table: Table, cells: Cells, view: Cells, points: NDArray[np.int64]) -> Floats:
    """Decades of entering a new cell of a view: points per new cell, both faded by age. The new cell is counted after it was judged."""
    count = table["anomaly_new"].reshape(-1)
    counted_at = table["anomaly_new_at"].reshape(-1)
    at = cells * len(VIEWS) + view
    rate = count[at] * np.exp(_FADE_LOG * (points - counted_at[at]))
    past = MEMORY * (1.0 - np.exp(_FADE_LOG * points))
    count[at] = rate * _FADE + 1.0
    counted_at[at] = points + 1
    decades: Floats = np.log10((past + EARLY) / (rate + _RARE))
    return np.maximum(decades, 0.0)
