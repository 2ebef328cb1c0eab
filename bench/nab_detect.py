"""Sends series through the shipped anomaly ensemble as the detect role does: a row each, one tick of all of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streams.operators.detect.anomaly import ensemble
from streams.operators.detect.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Detected(NamedTuple):
    """Of one series, (n,) each: scores, 0 where too little was known; which detector said so; and the expected band."""

    score: NDArray[np.float64]
    detector: NDArray[np.int8]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def detect(
    series: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]],
    options: ensemble.Options | None = None,
    on_tick: Callable[[int], None] = lambda _: None,
) -> list[Detected]:
    """What the detectors say of (times in ns, values), one tick of all series at a time, with the shipped defaults."""
    asked = options or ensemble.Options()
    table = Table()
    ensemble.define(table, 1, asked)
    rows = np.array([table.new_row() for _ in series], np.intp)
    lengths = np.array([len(values) for _, values in series])
    longest = int(lengths.max())
    at_ns = np.zeros((longest, len(series)), np.int64)
    values = np.full((longest, len(series)), np.nan)
    for k, (when, what) in enumerate(series):
        at_ns[: lengths[k], k] = when
        values[: lengths[k], k] = what
    score = np.zeros((longest, len(series)))
    detector = np.full((longest, len(series)), -1, np.int8)
    band = np.full((2, longest, len(series)), np.nan)
    for tick in range(longest):
        live = np.flatnonzero(lengths > tick)
        said = ensemble.score(table, rows[live], at_ns[tick, live], values[tick, live, None], asked)
        score[tick, live] = np.nan_to_num(said.score[:, 0])
        detector[tick, live] = said.detector[:, 0]
        band[0, tick, live] = said.low[:, 0]
        band[1, tick, live] = said.high[:, 0]
        on_tick(tick)
    return [Detected(score[:n, k], detector[:n, k], band[0, :n, k], band[1, :n, k]) for k, n in enumerate(lengths)]
