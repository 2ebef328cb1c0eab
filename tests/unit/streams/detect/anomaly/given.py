"""Series for the detectors, and what one detector alone says of them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streams.operators.detect.anomaly import ensemble, means, places, points, usual
from streams.operators.detect.anomaly.ensemble import Options, Scores
from streams.operators.detect.anomaly.given import Given
from streams.operators.detect.anomaly.score import score
from streams.operators.detect.table import Table

Floats = NDArray[np.float64]

SECOND: Final = 1_000_000_000
HOUR: Final = 3600 * SECOND
STEP: Final = 10 * SECOND
OPTIONS: Final = Options()
WARM: Final = OPTIONS.warm_up
DETECTORS: Final = tuple(name for name in ensemble.DETECTORS if name != "seasonal")
"""Those that judge by values alone; `seasonal` needs days."""


def alone(detector: str, values: Floats, step_ns: int = STEP, options: Options = OPTIONS) -> Floats:
    """Scores (n, k) that one detector gives to k series of n points side by side; NaN in the warm-up."""
    length, series = values.shape
    table = Table()
    ensemble.define(table, 1, options)
    rows = np.array([table.new_row() for _ in range(series)], np.intp)
    out = np.full(values.shape, np.nan)
    for i in range(length):
        counted, taken = points.take(table, rows, np.full(series, (i + 1) * step_ns), values[i], options)
        if not counted.any():
            continue
        at, number = places.where(taken.cells), taken.number
        youngest = int(number.min())
        now = usual.take(table, at, taken.values, number, youngest)
        way = means.take(table, at, taken.values, number, youngest)
        given = Given(taken.cells, at, taken.values, taken.at_ns, number, youngest, now, way)
        size = ensemble.sizes(table, given, options)[ensemble.DETECTORS.index(detector)]
        said = np.zeros(len(number)) if size is None else score(np.asarray(size, np.float64), 1.0)
        out[i, counted] = np.where(number < options.warm_up, np.nan, said)
    return out


def fleet(rows: int, width: int = 1, options: Options = OPTIONS) -> tuple[Table, NDArray[np.intp]]:
    table = Table()
    ensemble.define(table, width, options)
    return table, np.array([table.new_row() for _ in range(rows)], np.intp)


def run(values: Floats, at_ns: NDArray[np.int64] | None = None, options: Options = OPTIONS) -> Scores:
    """Scores of the ensemble, (n, k) each, of k series of n values side by side."""
    length, series = values.shape
    when = (np.arange(length, dtype=np.int64) + 1) * STEP if at_ns is None else at_ns
    table, rows = fleet(series, 1, options)
    found = [ensemble.score(table, rows, np.full(series, when[i]), values[i][:, None], options) for i in range(length)]
    return Scores(*(np.stack([getattr(one, name)[:, 0] for one in found]) for name in Scores._fields))


def noisy(n: int, seed: int = 1, mean: float = 50.0) -> Floats:
    return mean + np.random.default_rng(seed).normal(0.0, 1.0, n)
