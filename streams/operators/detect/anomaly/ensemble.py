"""The anomaly ensemble: every series' points go through all detectors, and the one that is surprised most says how odd they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly import ewma, hold, level, means, pattern, places, points, seasonal, shift, step, usual
from streams.operators.detect.anomaly.given import Given
from streams.operators.detect.anomaly.options import Options

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

__all__ = ["DETECTORS", "Options", "Scores", "define", "score"]

DETECTORS: Final = ("level", "pattern", "ewma", "shift", "step", "seasonal")
"""Names of what `Scores.detector` indexes."""
_ALWAYS: Final = (level, pattern, ewma, shift, step)
_LEVEL, _PATTERN, _STEP, _SEASONAL = 0, 1, 4, 5

STEP_SHARE: Final = 0.3
"""Of the surprise of a step that is added to that of a new level."""

BLOCK: Final = 2048
"""Series judged together: what is made of them on the way stays in the processor's cache (a third faster than 10,000, measured)."""

BAND_SIGMAS: Final = 3.0
"""Half width of the expected band."""


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
    for detector in _detectors(options):
        detector.define(table, width, options)
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


def _detectors(options: Options) -> tuple[ModuleType, ...]:
    return (*_ALWAYS, seasonal) if options.seasonal else _ALWAYS


def _judge(table: Table, taken: points.Points, options: Options) -> None:
    at = places.where(taken.cells)
    now = usual.take(table, at, taken.values, taken.number)
    way = means.take(table, at, taken.values, taken.number)
    given = Given(taken.cells, at, taken.values, taken.at_ns, taken.number, now, way)
    sizes = np.stack([detector.surprise(table, given, options) / detector.LIMIT for detector in _detectors(options)])
    unknown = np.isnan(sizes)
    sizes[unknown] = 0.0
    most = sizes.argmax(axis=0)
    size = sizes.max(axis=0)
    # a new level, a new way to it and a step say three things, of which none alone need be odd enough
    new = np.maximum(sizes[_LEVEL], sizes[_SEASONAL]) if options.seasonal else sizes[_LEVEL]
    np.maximum(size, new + sizes[_PATTERN] + STEP_SHARE * sizes[_STEP], out=size)
    size[unknown.all(axis=0)] = np.nan
    news, lasting = hold.news(table, at, size, given.number, options.hold_points)
    table["anomaly_score"].reshape(-1)[at] = news / (news + 1.0)
    table["anomaly_lasting"].reshape(-1)[at] = lasting / (lasting + 1.0)
    odd = news >= 1.0
    table["anomaly_detector"].reshape(-1)[given.cells[odd]] = most[odd]
    low, high = ewma.band(now, BAND_SIGMAS)
    table["anomaly_low"].reshape(-1)[at] = low
    table["anomaly_high"].reshape(-1)[at] = high
