"""Holds the last values of every series and evaluates all rules over all rows of a round at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streams.operators.detect import counters, ewma
from streams.operators.detect.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.ewma import Ewma
    from streams.operators.detect.plan import Plan

RECENT: int = 8
"""How many past values are kept for the evidence, at least RECENT_STEP_NS apart."""
RECENT_STEP_NS: int = 5_000_000_000


class Round(NamedTuple):
    """Values of n different rows. `values` (n, M) is NaN where nothing was said; `absent` (n, M) where it was said that there is none."""

    rows: NDArray[np.intp]
    at_ns: NDArray[np.int64]
    epoch: NDArray[np.int64]
    values: NDArray[np.float64]
    absent: NDArray[np.bool_] | None


class Cells(NamedTuple):
    """Findings to emit, one per (i, rule): i is the position in the round, `metric` indexes Plan.metrics."""

    i: NDArray[np.intp]
    rule: NDArray[np.intp]
    active: NDArray[np.bool_]
    since_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    limit: NDArray[np.float64]
    metric: NDArray[np.intp]


def define(table: Table, plan: Plan) -> None:
    """The columns that `evaluate` needs."""
    rules, metrics = len(plan.rules), len(plan.metrics)
    table.define("held", np.float64, np.nan, metrics)
    table.define("held_at_ns", np.int64, 0, metrics)
    table.define("active", np.bool_, False, rules)
    table.define("since_ns", np.int64, 0, rules)
    table.define("emitted_ns", np.int64, 0, rules)
    counters.define(table, len(plan.increases))
    ewma.define(table, len(plan.anomaly_metric))
    table.define("recent", np.float32, np.nan, RECENT, metrics)
    table.define("recent_at_ns", np.int64, 0)
    table.define("recent_count", np.int64, 0)


def evaluate(table: Table, plan: Plan, given: Round, settings: Ewma, repeat_ns: int) -> tuple[Cells, int]:
    """Takes a round in; returns what to emit and how many counters went back within an epoch.

    A rule whose value or limit is absent or stale neither fires nor clears nor is repeated: its finding expires ("signal lost").
    """
    rows, at = given.rows, given.at_ns
    said = ~np.isnan(given.values)
    fresh, ones = _hold(table, plan, given, said)
    grown, faults = np.empty((len(rows), 0)), 0
    if len(plan.increases):
        news = np.where(said[:, plan.increase_metric], given.values[:, plan.increase_metric], np.nan)
        grown, faults = counters.increase(table, rows, at, given.epoch, news, plan.increase_within_ns)

    value = fresh[:, plan.left]
    metric = np.broadcast_to(plan.left, value.shape)
    if len(plan.increases):
        value[:, plan.increases] = np.where(np.isnan(value[:, plan.increases]), np.nan, grown)
    if len(plan.bits):
        raw = value[:, plan.bits]
        unknown = np.isnan(raw)
        value[:, plan.bits] = np.where(unknown, np.nan, np.where(unknown, 0, raw).astype(np.int64) & plan.masks)
    if len(plan.equals):
        raw = value[:, plan.equals]
        value[:, plan.equals] = np.where(np.isnan(raw), np.nan, raw == plan.equal_to)
    if len(plan.anomalies):
        scores = ewma.score(table, rows, at, np.where(said, given.values, np.nan)[:, plan.anomaly_metric], settings)
        metric = metric.copy()
        for position, uses in zip(plan.anomalies, plan.anomaly_uses, strict=True):
            mine = np.where(uses & ~np.isnan(scores), scores, -1.0)
            worst = mine.argmax(axis=1)
            best = mine[np.arange(len(rows)), worst]
            value[:, position] = np.where(best < 0, np.nan, best)
            metric[:, position] = plan.anomaly_metric[worst]

    limit = ones[:, plan.of] * plan.times + plan.plus
    clear_limit = ones[:, plan.clear_of] * plan.clear_times + plan.clear_plus
    with np.errstate(invalid="ignore"):
        beyond = plan.sign * (value - limit) > 0
        well = plan.sign * (value - clear_limit) <= 0
        guarded = ones[:, plan.guard] > plan.guard_above
    was = table["active"][rows]
    fires, clears = beyond & guarded & ~was, well & was
    if not (fires.any() or was.any()):
        return _NONE, faults
    emitted = table["emitted_ns"][rows]
    passed = at[:, None] - emitted
    known = ~np.isnan(value - limit)
    # a clock that was set back must not silence a finding until it has caught up
    repeats = was & ~clears & known & ((passed >= repeat_ns) | (passed < 0))
    now = (was | fires) & ~clears
    since = np.where(fires, at[:, None], table["since_ns"][rows])
    emits = fires | clears | repeats
    table["active"][rows] = now
    table["since_ns"][rows] = since
    table["emitted_ns"][rows] = np.where(emits, at[:, None], emitted)
    i, rule = np.nonzero(emits)
    return Cells(i, rule, now[i, rule], since[i, rule], value[i, rule], limit[i, rule], metric[i, rule]), faults


def _hold(table: Table, plan: Plan, given: Round, said: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The values as of now, (n, M), NaN where absent or older than max_age; and the same with a column of ones appended."""
    rows, at = given.rows, given.at_ns[:, None]
    news = said if given.absent is None else said | given.absent
    held = np.where(news, given.values, table["held"][rows])
    held_at = np.where(news, at, table["held_at_ns"][rows])
    table["held"][rows] = held
    table["held_at_ns"][rows] = held_at
    ones = np.ones((len(rows), len(plan.metrics) + 1))
    fresh = ones[:, :-1]
    fresh[:] = np.where(at - held_at > plan.max_age_ns, np.nan, held)
    due = given.at_ns - table["recent_at_ns"][rows] >= RECENT_STEP_NS
    if due.any():
        those = rows[due]
        count = table["recent_count"][those]
        table["recent"][those, count % RECENT] = fresh[due]
        table["recent_count"][those] = count + 1
        table["recent_at_ns"][those] = given.at_ns[due]
    return fresh, ones


def recent(table: Table, row: int, metric: int) -> list[float]:
    """The past values of one metric of one series, oldest first, without those that were not known."""
    count = int(table["recent_count"][row])
    ring = table["recent"][row, :, metric]
    ordered = [float(ring[k % RECENT]) for k in range(max(0, count - RECENT), count)]
    return [x for x in ordered if x == x]


_EMPTY_INDEX = np.empty(0, np.intp)
_EMPTY = np.empty(0)
_NONE = Cells(_EMPTY_INDEX, _EMPTY_INDEX, np.empty(0, np.bool_), np.empty(0, np.int64), _EMPTY, _EMPTY, _EMPTY_INDEX)
