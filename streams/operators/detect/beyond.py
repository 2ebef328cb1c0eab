"""Whether a metric lies above what the load of its device explains, as temperature does above power where cooling fails.

Each device has a line of its own, metric against load, learnt with forgetting; the load is smoothed first, as heat lags behind power. It is
seen where neither a limit nor the other devices of the node tell: where a whole rack warms at little load, no card is near its slowdown and
all are alike. How far above the line counts by how far the device usually lies off it, by how far the load is from where the line was
learnt (a card that only idled so far says nothing of how warm it may be when busy), and by what a rule asks at the least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

FLOOR_RATIO: Final = 0.01
"""Least standard deviation, of load and of what is left over, as a share of the mean: readings are quantised."""
MOST_SIGMAS: Final = 2.0
"""What lies further off is learnt from as if it were this far: a fault must not soon be usual. The less is known of a load, the more."""


@dataclass(frozen=True, slots=True)
class Loads:
    """`memory_points`: points that one counts for. `warm_up_points` before there is a score. `lag_seconds`: time constant by which the
    metric follows its load. `limit_sigmas` off the line score 0.5. After a gap of `gap_seconds` the load is smoothed anew, and
    `settle_points` say nothing. A score is held for `max_age_seconds`."""

    memory_points: int = 4320
    warm_up_points: int = 360
    lag_seconds: float = 30.0
    limit_sigmas: float = 6.0
    gap_seconds: float = 120.0
    settle_points: int = 12
    max_age_seconds: float = 60.0


class Beyond(NamedTuple):
    """(n, P) each: score 0-1, NaN while too little is known or nothing was said of late; the value that was judged, and the most that was
    to be expected, in the metric's unit."""

    score: Floats
    value: Floats
    high: Floats


_FACTS: Final = 11
_COUNT, _SETTLED, _AT_NS, _LOAD, _MEAN, _MEAN_LOAD, _VARIANCE_LOAD, _COVARIANCE, _VARIANCE, _SCORE, _HIGH = range(_FACTS)


def define(table: Table, pairs: int) -> None:
    """Facts of each pair of metric and load."""
    table.define("beyond", np.float64, 0.0, pairs, _FACTS)


def score(
    table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: Floats, loads: Floats, least: Floats, options: Loads
) -> Beyond:
    """Takes points of distinct rows in, `values` and `loads` (n, P); `least` (P,) above the line scores 0.5 at most, in the metric's unit.
    A pair of which one is not known says nothing."""
    facts = table["beyond"][rows]
    known = np.isfinite(values) & np.isfinite(loads)
    if known.any():
        at = np.broadcast_to(at_ns[:, None], known.shape)[known].astype(np.float64)
        limit = np.broadcast_to(least, known.shape)[known]
        facts[known] = _point(facts[known], at, values[known], loads[known], limit, options)
        table["beyond"][rows] = facts
    old = (facts[..., _COUNT] == 0) | (at_ns[:, None] - facts[..., _AT_NS] > options.max_age_seconds * 1e9)
    return Beyond(np.where(old, np.nan, facts[..., _SCORE]), values, np.where(old, np.nan, facts[..., _HIGH]))


def _point(facts: Floats, at_ns: Floats, value: Floats, load: Floats, least: Floats, options: Loads) -> Floats:
    """The facts (k, _FACTS) with a point more."""
    f = facts.T.copy()
    count = f[_COUNT]
    first = count == 0
    passed = (at_ns - f[_AT_NS]) / 1e9
    again = first | (passed > options.gap_seconds) | (passed < 0)
    lag = np.where(again, 1.0, -np.expm1(-np.where(again, 0.0, passed) / options.lag_seconds))
    smooth = f[_LOAD] + lag * (load - f[_LOAD])
    mean, mean_load = np.where(first, value, f[_MEAN]), np.where(first, load, f[_MEAN_LOAD])

    spread = np.maximum(f[_VARIANCE_LOAD], np.square(FLOOR_RATIO * mean_load) + 1e-300)
    away = smooth - mean_load
    # what a load brings is never less of the metric
    slope = np.maximum(f[_COVARIANCE], 0.0) / spread
    line = mean + slope * away
    left = value - line
    sigma = np.maximum(np.sqrt(f[_VARIANCE]), FLOOR_RATIO * np.abs(mean) + 1e-300)
    # how far the line says more than was learnt: standard errors of a prediction
    reach = sigma * np.sqrt(1.0 + np.square(away) / spread)
    limit = np.maximum(least, options.limit_sigmas * reach)
    settled = np.where(again, 0.0, f[_SETTLED] + 1.0)
    above = np.maximum(left, 0.0)
    judged = (count >= options.warm_up_points) & (settled >= options.settle_points)
    f[_SCORE] = np.where(judged, above / (above + limit), np.nan)
    f[_HIGH] = np.where(judged, line + limit, np.nan)

    weight = np.maximum(1.0 / (count + 1.0), 1.0 / options.memory_points)
    warm = count >= options.warm_up_points
    taken = np.where(warm, np.clip(left, -MOST_SIGMAS * reach, MOST_SIGMAS * reach), left)
    off = line + taken - mean
    f[_MEAN] = mean + weight * off
    f[_MEAN_LOAD] = mean_load + weight * away
    f[_VARIANCE_LOAD] = (1.0 - weight) * (f[_VARIANCE_LOAD] + weight * np.square(away))
    f[_COVARIANCE] = (1.0 - weight) * (f[_COVARIANCE] + weight * away * off)
    f[_VARIANCE] = (1.0 - weight) * (f[_VARIANCE] + weight * np.square(taken))
    f[_LOAD], f[_AT_NS], f[_COUNT], f[_SETTLED] = smooth, at_ns, count + 1.0, settled
    return f.T
