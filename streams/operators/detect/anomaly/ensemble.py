"""The anomaly ensemble: every series' points go through all detectors, and the one that is surprised most says how odd they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly import ewma, hold, novelty, points, seasonal, shift, step, usual
from streams.operators.detect.anomaly.given import Given
from streams.operators.detect.anomaly.options import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

__all__ = ["DETECTORS", "Options", "Scores", "define", "score"]

DETECTORS: Final = ("novelty", "ewma", "shift", "step", "seasonal")
"""Names of what `Scores.detector` indexes."""
_ALWAYS: Final = (novelty, ewma, shift, step)

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
    if options.point_seconds < 0 or options.warm_up < novelty.LEARN or options.hold_points < 1 or options.forget_gap_points < 2:
        raise ValueError(
            f"anomaly options out of range: {options}: point_seconds from 0, warm_up from {novelty.LEARN}, "
            "hold_points from 1, forget_gap_points from 2"
        )
    points.define(table, width)
    usual.define(table, width)
    for detector in _ALWAYS:
        detector.define(table, width)
    if options.seasonal:
        seasonal.define(table, width)
    hold.define(table, width)
    table.define("anomaly_score", np.float32, np.nan, width)
    table.define("anomaly_lasting", np.float32, np.nan, width)
    table.define("anomaly_detector", np.int8, -1, width)
    table.define("anomaly_band", np.float64, np.nan, width, 2)


def score(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: Floats, options: Options) -> Scores:
    """Scores of `values` (n, W) at `at_ns` (n,) of the distinct `rows` (n,), against what was before them, which they then join."""
    counted, taken = points.take(table, rows, at_ns, values, options)
    if len(taken.cells):
        _judge(table, taken, options)
    said = np.where(counted, table["anomaly_score"][rows], np.nan)
    lasting = np.where(counted, table["anomaly_lasting"][rows], np.nan)
    band = table["anomaly_band"][rows]
    return Scores(said, table["anomaly_detector"][rows], band[..., 0], band[..., 1], lasting)


def _judge(table: Table, taken: points.Points, options: Options) -> None:
    now = usual.take(table, taken.cells, taken.values, taken.number)
    given = Given(taken.cells, taken.values, taken.at_ns, taken.number, now)
    detectors = (*_ALWAYS, seasonal) if options.seasonal else _ALWAYS
    sizes = np.stack([detector.surprise(table, given, options) / detector.LIMIT for detector in detectors])
    known = ~np.isnan(sizes)
    sizes[~known] = -1.0
    most = sizes.argmax(axis=0)
    size = sizes[most, np.arange(len(most))]
    size[~known.any(axis=0)] = np.nan
    news, lasting = hold.news(table, given.cells, size, given.number, options.hold_points)
    table["anomaly_score"].reshape(-1)[given.cells] = news / (news + 1.0)
    table["anomaly_lasting"].reshape(-1)[given.cells] = lasting / (lasting + 1.0)
    odd = news >= 1.0
    table["anomaly_detector"].reshape(-1)[given.cells[odd]] = most[odd]
    low, high = ewma.band(now, BAND_SIGMAS)
    table["anomaly_band"].reshape(-1, 2)[given.cells] = np.stack((low, high), axis=1)
