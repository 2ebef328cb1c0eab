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
from streams.operators.detect.anomaly.level import LEAST, TINY
from streams.operators.detect.anomaly.nearest import GENERATION
from streams.operators.detect.anomaly.places import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.options import Options
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
_FEATURE: Final = np.array([0 if feature == 0.0 else 1 + means.WEIGHTS.index(feature) for feature, _ in _PARTS])
_HALVES: Final = np.array([cells / 2 for _, cells in _PARTS])[:, None]
_SHIFT: Final = np.array([(0.5 if cells % 2 else 0.0) + _TIE for _, cells in _PARTS])[:, None]
_ENDS: Final = np.cumsum([len(view.features) for view in VIEWS]).tolist()
_VIEW_PARTS: Final = tuple(slice(end - len(view.features), end) for view, end in zip(VIEWS, _ENDS, strict=True))
_WEIGHT: Final = np.array([view.weight for view in VIEWS])
_HASH: Final = np.array([(0x9E3779B97F4A7C15 * (2 * k * k + 1)) % 2**64 | 1 for k in range(len(_PARTS))], np.uint64)[:, None]
"""Odd multiples of 2**64 by the golden ratio: neighbouring cells fall far apart."""
_TOP: Final = np.array([64 - int(math.log2(view.bits)) for view in VIEWS], np.uint64)[:, None]
_BYTES: Final = np.array([view.bits // 8 for view in VIEWS])[:, None]
_GENERATION_BYTES: Final = int(_BYTES.sum())
_OFFSET: Final = np.cumsum(_BYTES, axis=0) - _BYTES
_BIT: Final = (1 << np.arange(8)).astype(np.uint8)
_FADE: Final = 1.0 - 1.0 / MEMORY
_FADE_LOG: Final = math.log(_FADE)


def define(table: Table, width: int, options: Options) -> None:
    """First points, bitmaps (generation, view), centre and half range, and each view's rate of new cells with the point it is from."""
    del options
    table.define("anomaly_first", np.float32, 0.0, width, LEARN)
    table.define("anomaly_seen", np.uint8, 0, width, 2 * _GENERATION_BYTES)
    table.define("anomaly_range", np.float64, 0.0, width, 2)
    table.define("anomaly_new", np.float32, 0.0, width, len(VIEWS))
    table.define("anomaly_new_at", np.int32, 0, width, len(VIEWS))


def surprise(table: Table, given: Given, options: Options) -> Floats:
    """Decades (m,), 0 where nothing is new; NaN in the warm-up, which is at least LEARN points."""
    learning = given.number < LEARN
    if not learning.any():
        return _judge(table, given.cells, np.vstack((given.values, given.means)), given.number, options.warm_up, given.at)
    out = np.full(len(given.cells), np.nan)
    those = np.flatnonzero(learning)
    _collect(table, given.cells[those], given.values[those], given.number[those])
    ready = given.cells[those[given.number[those] == LEARN - 1]]
    if len(ready):
        _learn(table, ready, options)
    rest = np.flatnonzero(~learning)
    if len(rest):
        features = np.vstack((given.values[rest], given.means[:, rest]))
        out[rest] = _judge(table, given.cells[rest], features, given.number[rest], options.warm_up, given.cells[rest])
    return out


def _collect(table: Table, cells: Cells, values: Floats, number: NDArray[np.int64]) -> None:
    """Keeps the first points, as distances from the very first in shares of the largest: single precision ends at 3e38."""
    kept = table["anomaly_first"].reshape(-1, LEARN)
    place = table["anomaly_range"].reshape(-1, 2)
    new = number == 0
    place[cells[new], 0] = values[new]
    away = values - place[cells, 0]
    grown = np.flatnonzero(np.abs(away) > place[cells, 1])
    if len(grown):
        some, wider = cells[grown], np.abs(away[grown])
        kept[some] *= (place[some, 1] / wider).astype(np.float32)[:, None]
        place[some, 1] = wider
    unit = place[cells, 1]
    kept[cells, number] = np.divide(away, unit, out=np.zeros(len(cells)), where=unit > 0)


def _learn(table: Table, cells: Cells, options: Options) -> None:
    """Learns the usual range from the points that were kept, and goes through them again to learn which cells there were."""
    place = table["anomaly_range"].reshape(-1, 2)
    points = place[cells, :1] + table["anomaly_first"].reshape(-1, LEARN)[cells].astype(np.float64) * place[cells, 1:]
    ordered = np.sort(points, axis=1)
    edge = int(EDGE * (LEARN - 1))
    low, high = ordered[:, edge], ordered[:, LEARN - 1 - edge]
    flat = high <= low
    low, high = np.where(flat, ordered[:, 0], low), np.where(flat, ordered[:, -1], high)
    place[cells, 0] = (low + high) / 2
    place[cells, 1] = np.maximum((high - low) / 2, np.maximum(LEAST * np.maximum(np.abs(low), np.abs(high)), TINY))
    way = np.zeros((len(means.WEIGHTS), len(cells)))
    for k in range(LEARN):
        number = np.full(len(cells), k, np.int64)
        way = means.step(way, points[:, k], number)
        _judge(table, cells, np.vstack((points[:, k], way)), number, options.warm_up, cells)


def _judge(table: Table, cells: Cells, features: Floats, number: NDArray[np.int64], warm_up: int, at: Where) -> Floats:
    """The surprise of `features` (value and means, m); then they are known."""
    out = np.zeros(len(number))
    out[number < warm_up] = np.nan
    where = _cells_of(table, at, features)
    bitmaps = table["anomaly_seen"].reshape(-1, 2, _GENERATION_BYTES)
    generation = (number // GENERATION) & 1
    turned = (number % GENERATION == 0) & (number > 0)
    if turned.any():
        bitmaps[cells[turned], generation[turned]] = 0
    seen = bitmaps.reshape(-1)
    byte = (where >> 3) + _OFFSET + cells * (2 * _GENERATION_BYTES)
    bit = _BIT.take(where & 7, mode="clip")
    mine = byte + generation * _GENERATION_BYTES
    have = seen.take(mine, mode="clip")
    lacking = (have & bit) == 0
    if not lacking.any():
        return out
    view, i = np.nonzero(lacking)
    seen[mine[view, i]] = have[view, i] | bit[view, i]
    theirs = byte[view, i] + (1 - generation[i]) * _GENERATION_BYTES
    new = ((seen[theirs] & bit[view, i]) == 0) & (number[i] >= warm_up)
    if new.any():
        view, i = view[new], i[new]
        out += np.bincount(i, _rarity(table, cells[i], view, number[i] - warm_up) * _WEIGHT[view], len(cells))
    return out


def _cells_of(table: Table, at: Where, features: Floats) -> NDArray[np.int64]:
    """The place in its bitmap (view, m) of each view."""
    place = rows(table["anomaly_range"].reshape(-1, 2), at)
    level = ((features - place[:, 0]) / place[:, 1])[_FEATURE] * _HALVES
    beyond = np.abs(level) > _HALVES
    if beyond.any():
        edge = _HALVES[np.nonzero(beyond)[0], 0]
        further = edge + np.log1p((np.abs(level[beyond]) - edge) * WIDER) / math.log1p(WIDER)
        level[beyond] = np.copysign(further, level[beyond])
    level += _SHIFT
    mixed = np.floor(level, out=level).astype(np.int64).view(np.uint64) * _HASH
    together = np.stack([mixed[part].sum(axis=0) for part in _VIEW_PARTS])
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
    decades: Floats = np.maximum(np.log10((past + EARLY) / (rate + RARE)), 0.0)
    return decades
