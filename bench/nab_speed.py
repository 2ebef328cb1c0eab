"""How many points a second one core judges: many series a call, as many as one node's message holds, and two others beside it.

CPU time is measured, not the clock on the wall: a busy machine is slower in both, but is not charged for what others do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly import ensemble
from streams.operators.detect.table import Table

MANY: Final = 10_000
MESSAGE: Final = 312
"""Eight devices of a node with 39 metrics each: what one message brings."""
SETTLE_TICKS: Final = 450
"""Three times the warm-up: what is measured is a series that is known."""
STEP_NS: Final = 10_000_000_000
"""Every value is a point of its own."""
SAMPLE_NS: Final = 1_000_000_000
"""As an agent samples: ten values are a point."""


class Speed(NamedTuple):
    """A second and core: points of many series and of one message, samples of many series that say something each second, and two peers."""

    many: float
    sampled: float
    message: float
    half_space_trees: float
    python_ewma: float


def ensemble_rate(
    rows: int, width: int, ticks: int, on_tick: Callable[[], None] = lambda: None, settle: int = SETTLE_TICKS, step_ns: int = STEP_NS
) -> float:
    """Values per second of CPU time, by the mean of `ticks` calls with `rows` rows of `width` series, one each `step_ns`."""
    options = ensemble.Options()
    table = Table()
    ensemble.define(table, width, options)
    each = np.array([table.new_row() for _ in range(rows)], np.intp)
    random = np.random.default_rng(1)
    usual = random.normal(50.0, 10.0, (rows, width))
    spent = []
    for tick in range(settle + ticks):
        values = usual + 5.0 * np.sin(tick / 60.0) + random.normal(0.0, 1.0, (rows, width))
        at_ns = np.full(rows, (tick + 1) * step_ns)
        begun = time.process_time()
        ensemble.score(table, each, at_ns, values, options)
        if tick >= settle:
            spent.append(time.process_time() - begun)
        on_tick()
    return rows * width / float(np.mean(spent))


def half_space_trees_rate(points: int) -> float:
    """river's HalfSpaceTrees with its defaults, one point after the other as it takes them."""
    from river.anomaly import HalfSpaceTrees  # only here: the rest of the bench works without it

    model: Any = HalfSpaceTrees(seed=1)  # its methods have no types
    values = np.random.default_rng(1).random(points)
    begun = time.process_time()
    for value in values.tolist():
        model.score_one({"x": value})
        model.learn_one({"x": value})
    return points / (time.process_time() - begun)


def python_ewma_rate(points: int) -> float:
    """An EWMA z-score in plain Python: what a loop over series costs at the least."""
    values = np.random.default_rng(1).normal(50.0, 1.0, points).tolist()
    mean, variance, odd = 50.0, 1.0, 0
    begun = time.process_time()
    for value in values:
        away = value - mean
        odd += away * away > 9.0 * variance
        mean += 0.01 * away
        variance = 0.99 * (variance + 0.01 * away * away)
    return points / (time.process_time() - begun)
