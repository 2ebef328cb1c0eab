"""Novelty of the way: a series is seen in cells of its means, long and short; how rarely does it enter a cell never seen?

A *view* is one running mean or several together, each cut into cells over its usual range; the cell is hashed into a bitmap of what was
seen. To enter a new one surprises by the rarity of new cells in that view of that series: log10(points / new cells), added by weight.
Cells grow beyond the usual range, so that a spike twice as high as the last is not a hundred new ones. Bitmaps come in two
generations, the older of which is emptied every GENERATION points: what was not seen for one to two of them is new again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly import means
from streams.operators.detect.anomaly.nearest import GENERATION, LEAST, TINY
from streams.operators.detect.anomaly.places import planes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.places import Where
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]
    Cells = NDArray[np.intp]


class View(NamedTuple):
    """Features that are one cell together (0 is the value, others are the running means), cells over the usual range of each, hash bits."""

    features: tuple[float, ...]
    cells: int
    bits: int
    weight: float


VIEWS: Final = (View((0.005,), 6, 128, 1.0), View((0.0, 0.1, 0.01), 4, 1024, 1.5))
"""A long mean that goes where it never was, and a value that comes where it was before by another way."""
LIMIT: Final = 5.3
"""Decades, weighted and summed over the views, that score 0.5."""

LEARN: Final = 128
"""Points from which a series' usual range is learnt; they are kept until then."""
EDGE: Final = 0.05
"""Share of these points on either side that lies outside of the usual range."""
WIDER: Final = 0.3
"""Each cell beyond the usual range is wider by this share than the one before."""
MEMORY: Final = 2000
"""Points over which the rate of new cells is taken."""
EARLY: Final = 1.0
"""Points without anything new that each view is credited with at the start."""
RARE: Final = 0.5
"""New cells that each view is charged with: none so far does not mean never."""

_TIE: Final = 1.7e-4
"""Shifts cell borders off the round numbers that readings are quantised to, so that rounding cannot put one value in two cells."""
_PARTS: Final = tuple((feature, view.cells) for view in VIEWS for feature in view.features)
_FEATURE: Final = tuple(-1 if feature == 0.0 else means.WEIGHTS.index(feature) for feature, _ in _PARTS)
_HALVES: Final = np.array([cells / 2 for _, cells in _PARTS])[:, None]
_SHIFT: Final = np.array([(0.5 if cells % 2 else 0.0) + _TIE for _, cells in _PARTS])[:, None]
_ENDS: Final = np.cumsum([len(view.features) for view in VIEWS]).tolist()
_VIEW_PARTS: Final = tuple(range(end - len(view.features), end) for view, end in zip(VIEWS, _ENDS, strict=True))
_WEIGHT: Final = np.array([view.weight for view in VIEWS])
_HASH: Final = np.array([(0x9E3779B97F4A7C15 * (2 * k * k + 1)) % 2**64 | 1 for k in range(len(_PARTS))], np.uint64)[:, None]
"""Odd multiples of 2**64 by the golden ratio: neighbouring cells fall far apart."""
_TOP: Final = np.array([64 - int(math.log2(view.bits)) for view in VIEWS], np.uint64)[:, None]
_BYTES: Final = np.array([view.bits // 8 for view in VIEWS])[:, None]
_GENERATION_BYTES: Final = int(_BYTES.sum())
_OFFSET: Final = np.cumsum(_BYTES, axis=0) - _BYTES
_FADE: Final = 1.0 - 1.0 / MEMORY
_FADE_LOG: Final = math.log(_FADE)


def define(table: Table, width: int) -> None:
    """First points, bitmaps (generation, view), centre and half range, and each view's rate of new cells with the point it is from."""
    table.define("anomaly_first", np.float32, 0.0, width, LEARN)
    table.define("anomaly_seen", np.uint8, 0, width, 2 * _GENERATION_BYTES)
    table.define_planes("anomaly_range", np.float64, 0.0, 2, width)
    table.define("anomaly_new", np.float32, 0.0, width, len(VIEWS))
    table.define("anomaly_new_at", np.int32, 0, width, len(VIEWS))


def size(table: Table, given: Given, warm_up: int) -> Floats:
    """Decades by LIMIT, (m,), 0 where nothing is new and in the warm-up, which is at least LEARN points."""
    if given.youngest >= LEARN:
        return _judge(table, given.cells, given.values, given.means, given.number, warm_up, given.at)
    out = np.zeros(len(given.cells))
    learning = given.number < LEARN
    those = np.flatnonzero(learning)
    _collect(table, given.cells[those], given.values[those], given.number[those])
    ready = given.cells[those[given.number[those] == LEARN - 1]]
    if len(ready):
        _learn(table, ready, warm_up)
    rest = np.flatnonzero(~learning)
    if len(rest):
        cells, way = given.cells[rest], given.means[:, rest]
        out[rest] = _judge(table, cells, given.values[rest], way, given.number[rest], warm_up, cells)
    return out


def _collect(table: Table, cells: Cells, values: Floats, number: NDArray[np.int32]) -> None:
    """Keeps the first points, as distances from the very first in shares of the largest: single precision ends at 3e38."""
    kept = table["anomaly_first"].reshape(-1, LEARN)
    first, most = table["anomaly_range"].reshape(2, -1)
    new = number == 0
    first[cells[new]] = values[new]
    away = values - first[cells]
    grown = np.flatnonzero(np.abs(away) > most[cells])
    if len(grown):
        some, wider = cells[grown], np.abs(away[grown])
        kept[some] *= (most[some] / wider).astype(np.float32)[:, None]
        most[some] = wider
    unit = most[cells]
    kept[cells, number] = np.divide(away, unit, out=np.zeros(len(cells)), where=unit > 0)


def _learn(table: Table, cells: Cells, warm_up: int) -> None:
    """Learns the usual range from the points that were kept, and goes through them again to learn which cells there were."""
    place = table["anomaly_range"].reshape(2, -1)
    first, most = place[:, cells]
    points = first[:, None] + table["anomaly_first"].reshape(-1, LEARN)[cells].astype(np.float64) * most[:, None]
    ordered = np.sort(points, axis=1)
    edge = int(EDGE * (LEARN - 1))
    low, high = ordered[:, edge], ordered[:, LEARN - 1 - edge]
    flat = high <= low
    low, high = np.where(flat, ordered[:, 0], low), np.where(flat, ordered[:, -1], high)
    place[0, cells] = (low + high) / 2
    place[1, cells] = np.maximum((high - low) / 2, np.maximum(LEAST * np.maximum(np.abs(low), np.abs(high)), TINY))
    way = np.zeros((len(means.WEIGHTS), len(cells)))
    for k in range(LEARN):
        number = np.full(len(cells), k, np.int32)
        way += means.weights(number, k) * (points[:, k] - way)
        _judge(table, cells, points[:, k], way, number, warm_up, cells)


def _judge(table: Table, cells: Cells, values: Floats, way: Floats, number: NDArray[np.int32], warm_up: int, at: Where) -> Floats:
    """The surprise of `values` (m,) that come by their means `way` (K, m), by LIMIT; then they are known."""
    m = len(cells)
    out = np.zeros(m)
    where = _cells_of(table, at, values, way)
    generation = number // GENERATION
    turned = number == generation * GENERATION
    generation &= 1
    bitmaps = table["anomaly_seen"].reshape(-1, 2, _GENERATION_BYTES)
    if turned.any():
        bitmaps[cells[turned], generation[turned]] = 0
    seen = bitmaps.reshape(-1)
    base = cells * (2 * _GENERATION_BYTES)
    mine = where >> 3
    mine += _OFFSET
    mine += base + generation * _GENERATION_BYTES
    where &= 7
    shift = where.astype(np.uint8)
    have = seen.take(mine, mode="clip")
    lacking = np.flatnonzero(((have >> shift) & 1) == 0)
    if not len(lacking):
        return out
    view = lacking // m
    i = lacking - view * m
    bit = (1 << shift.reshape(-1)[lacking]).astype(np.uint8)
    place = mine.reshape(-1)[lacking]
    seen[place] |= bit
    theirs = place + (1 - 2 * generation[i]) * _GENERATION_BYTES
    new = ((seen[theirs] & bit) == 0) & (number[i] >= warm_up)
    if new.any():
        view, i = view[new], i[new]
        out += np.bincount(i, _rarity(table, cells[i], view, number[i] - warm_up) * (_WEIGHT[view] / LIMIT), m)
    return out


def _cells_of(table: Table, at: Where, values: Floats, way: Floats) -> NDArray[np.int64]:
    """The place in its bitmap (view, m) of each view."""
    centre, half = planes(table, "anomaly_range", at)
    level = np.empty((len(_PARTS), len(values)))
    for k, feature in enumerate(_FEATURE):
        np.subtract(values if feature < 0 else way[feature], centre, out=level[k])
    level /= half
    level *= _HALVES
    beyond = np.flatnonzero(np.abs(level) > _HALVES)
    if len(beyond):
        flat = level.reshape(-1)
        off = flat[beyond]
        edge = _HALVES[beyond // len(values), 0]
        further = edge + np.log1p((np.abs(off) - edge) * WIDER) / math.log1p(WIDER)
        flat[beyond] = np.copysign(further, off)
    level += _SHIFT
    mixed = np.floor(level, out=level).astype(np.int64).view(np.uint64)
    mixed *= _HASH
    together = np.empty((len(VIEWS), len(values)), np.uint64)
    for k, parts in enumerate(_VIEW_PARTS):
        together[k] = mixed[parts[0]]
        for part in parts[1:]:
            together[k] += mixed[part]
    together >>= _TOP
    return together.view(np.int64)


def _rarity(table: Table, cells: Cells, view: Cells, points: NDArray[np.int64]) -> Floats:
    """Decades of entering a new cell of a view: points per new cell, both faded by age. The new cell is counted after it was judged."""
    count = table["anomaly_new"].reshape(-1)
    counted_at = table["anomaly_new_at"].reshape(-1)
    at = cells * len(VIEWS) + view
    rate = count[at] * np.exp(_FADE_LOG * (points - counted_at[at]))
    past = MEMORY * (1.0 - np.exp(_FADE_LOG * points))
    count[at] = rate * _FADE + 1.0
    counted_at[at] = points + 1
    decades: Floats = np.maximum(np.log10((past + EARLY) / (rate + RARE)), 0.0)
    return decades
