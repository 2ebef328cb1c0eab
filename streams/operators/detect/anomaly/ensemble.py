"""The anomaly ensemble: every series' points go through all detectors, and the one that is surprised most says how odd they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly import ewma, hold, level, means, nearest, pattern, places, points, seasonal, shift, step, tails, usual
from streams.operators.detect.anomaly.given import Given
from streams.operators.detect.anomaly.options import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

__all__ = ["DETECTORS", "Options", "Scores", "define", "score"]

DETECTORS: Final = ("level", "pattern", "ewma", "shift", "step", "seasonal")
"""Names of what `Scores.detector` indexes."""
_LEVEL, _PATTERN, _EWMA, _SHIFT, _STEP, _SEASONAL = range(len(DETECTORS))
_TAILS: Final = (ewma, shift, step)
"""Those that look at how rarely a statistic of theirs was as large."""
_KINDS: Final = sum(detector.KINDS for detector in _TAILS)

STEP_SHARE: Final = 0.3
"""Of the surprise of a step that is added to that of a new level."""

BLOCK: Final = 16_384
"""Series judged together, at most: more need memory and are no faster (measured)."""

MOST: Final = 1e30
"""Limits that are told apart: single precision ends at 3e38."""
CLOSELY: Final = 1.0 - nearest.KNOWN / level.LIMIT
"""Where the others are surprised by so much, how near a level is to a known one decides; where they are not, that it is near will do."""


class Scores(NamedTuple):
    """Of (n, W) values, all of that shape.

    `score`: 0 to 1, 0.5 is the boundary; NaN where nothing was said and while too little is known; between two points that of the
    last one. It tells news: after a surprise, only a larger one scores for `Options.hold_points`.
    `lasting`: the largest score of late, falling to 0 over `Options.hold_points`: for how long a finding stands.
    `detector`: which of DETECTORS was surprised most at the last score of 0.5 or more; -1 before the first.
    `low`, `high`: the band that was expected, in the metric's unit; NaN until there is one.
    """

    score: Floats
    detector: NDArray[np.int8]
    low: Floats
    high: Floats
    lasting: Floats


def define(table: Table, width: int, options: Options) -> None:
    """The columns for `width` series a row. ValueError where an option is out of range."""
    if options.point_seconds < 0 or options.warm_up < pattern.LEARN or options.hold_points < 1 or options.forget_gap_points < 2:
        raise ValueError(
            f"anomaly options out of range: {options}: point_seconds from 0, warm_up from {pattern.LEARN}, "
            "hold_points from 1, forget_gap_points from 2"
        )
    points.define(table, width)
    usual.define(table, width)
    means.define(table, width)
    level.define(table, width)
    pattern.define(table, width)
    step.define(table, width)
    tails.define(table, width, _KINDS)
    if options.seasonal:
        seasonal.define(table, width)
    hold.define(table, width)
    table.define("anomaly_score", np.float32, np.nan, width)
    table.define("anomaly_lasting", np.float32, np.nan, width)
    table.define("anomaly_detector", np.int8, -1, width)
    table.define("anomaly_low", np.float64, np.nan, width)
    table.define("anomaly_high", np.float64, np.nan, width)


def score(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: Floats, options: Options) -> Scores:
    """Scores of `values` (n, W) at `at_ns` (n,) of the distinct `rows` (n,), against what was before them, which they then join."""
    size = max(BLOCK // max(values.shape[1], 1), 1)
    if len(rows) <= size:
        return _score(table, rows, at_ns, values, options)
    blocks = [slice(k, k + size) for k in range(0, len(rows), size)]
    found = [_score(table, rows[block], at_ns[block], values[block], options) for block in blocks]
    return Scores(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _score(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: Floats, options: Options) -> Scores:
    width = values.shape[1]
    cells = (rows[:, None] * width + np.arange(width)).ravel()
    when = at_ns if width == 1 else np.repeat(at_ns, width)
    counted, taken = points.take(table, cells, when, values.reshape(-1), options)
    if len(taken.cells):
        _judge(table, taken, options)
    at = places.where(cells)

    def held(name: str) -> NDArray[Any]:
        return places.rows(table[f"anomaly_{name}"].reshape(-1), at).reshape(values.shape).copy()

    said, lasting = held("score"), held("lasting")
    if not counted.all():
        unsaid = ~counted.reshape(values.shape)
        said[unsaid] = lasting[unsaid] = np.nan
    return Scores(said, held("detector"), held("low"), held("high"), lasting)


def _judge(table: Table, taken: points.Points, options: Options) -> None:
    cells, at, number = taken.cells, places.where(taken.cells), taken.number
    youngest = int(number.min())
    now = usual.take(table, at, taken.values, number, youngest)
    way = means.take(table, at, taken.values, number, youngest)
    given = Given(cells, at, taken.values, taken.at_ns, number, youngest, now, way)
    found = sizes(table, given, options)
    # a new level, a new way to it and a step say three things, of which none alone need be odd enough
    size = np.maximum(found[_LEVEL], found[_SEASONAL])
    size += found[_PATTERN]
    size += STEP_SHARE * found[_STEP]
    for alone in (_EWMA, _SHIFT, _STEP):
        np.maximum(size, found[alone], out=size)
    whole = np.minimum(size, MOST, out=size).astype(np.float32)
    if youngest < options.warm_up:
        whole[number < options.warm_up] = np.nan
    fresh, lasting = hold.news(table, cells, at, whole, number, options.hold_points)
    score, odd = table["anomaly_score"].reshape(-1), fresh[whole[fresh] >= 1.0]
    score[at] = whole * np.float32(0.0)
    score[cells[fresh]] = whole[fresh] / (whole[fresh] + np.float32(1.0))
    lasting += whole * np.float32(0.0)
    table["anomaly_lasting"].reshape(-1)[at] = lasting / (lasting + np.float32(1.0))
    if len(odd):
        table["anomaly_detector"].reshape(-1)[cells[odd]] = np.argmax([one[odd] for one in found], axis=0)
    table["anomaly_low"].reshape(-1)[at] = now.low
    table["anomaly_high"].reshape(-1)[at] = now.high


def sizes(table: Table, given: Given, options: Options) -> list[NDArray[Any]]:
    """How surprised each of DETECTORS is, (m,) each, 1 being its limit, in the warm-up as well; 0 where it has nothing to say.

    Of a level that is near to a known one the others decide whether it is told how near.
    """
    new = pattern.size(table, given, options.warm_up)
    statistics = np.empty((_KINDS, len(given.cells)), np.float32)
    first = 0
    for detector in _TAILS:
        detector.statistics(table, given, statistics[first : first + detector.KINDS])
        first += detector.KINDS
    decades = tails.surprise(table, given, statistics)
    found: list[NDArray[Any]] = []
    first = 0
    for detector in _TAILS:
        found.append(detector.size(given, decades[first : first + detector.KINDS]))
        first += detector.KINDS
    closely = new + STEP_SHARE * found[-1] >= CLOSELY
    hour = seasonal.size(table, given, closely) if options.seasonal else np.zeros(len(given.cells))
    return [level.size(table, given, closely), new, *found, hour]
