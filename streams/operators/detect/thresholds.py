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
    ones = _hold(table, plan, given)
    value = ones[:, plan.left]
    faults, worst = 0, None
    if len(plan.increases):
        grown, faults = counters.increase(table, rows, at, given.epoch, given.values[:, plan.increase_metric], plan.increase_within_ns)
        value[:, plan.increases] = grown + 0.0 * value[:, plan.increases]  # stays NaN where the counter is not known
    if len(plan.bits):
        raw = value[:, plan.bits]
        unknown = np.isnan(raw)
        value[:, plan.bits] = np.where(unknown, np.nan, np.where(unknown, 0, raw).astype(np.int64) & plan.masks)
    if len(plan.equals):
        raw = value[:, plan.equals]
        value[:, plan.equals] = (raw == plan.equal_to) + 0.0 * raw
    if len(plan.anomalies):
        scores = ewma.score(table, rows, at, given.values[:, plan.anomaly_metric], settings)
        # (n, rules, metrics): what a rule does not look at, and what has no score, is never the worst
        mine = np.where(plan.anomaly_uses & (scores == scores)[:, None, :], scores[:, None, :], -1.0)
        best = mine.max(axis=2)
        value[:, plan.anomalies] = np.where(best < 0, np.nan, best)
        worst = mine
    limit = ones[:, plan.of] * plan.times + plan.plus
    margin = plan.sign * (value - limit)
    beyond = margin > 0
    was = table["active"][rows]
    any_was = was.any()
    if not any_was and not beyond.any():
        return _NONE, faults

    fires = beyond & (ones[:, plan.guard] > plan.guard_above) & ~was
    now, emits = was | fires, fires
    emitted = table["emitted_ns"][rows]
    if any_was:
        clears = was & (plan.sign * (value - (ones[:, plan.clear_of] * plan.clear_times + plan.clear_plus)) <= 0)
        passed = at[:, None] - emitted
        # a clock that was set back must not silence a finding until it has caught up
        repeats = was & ~clears & (margin == margin) & ((passed >= repeat_ns) | (passed < 0))
        now, emits = now & ~clears, fires | clears | repeats
    i, rule = np.nonzero(emits)
    if len(i) == 0:
        return _NONE, faults
    row = rows[i]
    table["active"][row, rule] = now[i, rule]
    table["emitted_ns"][row, rule] = at[i]
    begun = fires[i, rule]
    table["since_ns"][row[begun], rule[begun]] = at[i[begun]]
    metric = plan.left[rule]
    if worst is not None:
        for k in np.flatnonzero(np.isin(rule, plan.anomalies)):
            metric[k] = plan.anomaly_metric[worst[i[k], np.searchsorted(plan.anomalies, rule[k])].argmax()]
    return Cells(i, rule, now[i, rule], table["since_ns"][row, rule], value[i, rule], limit[i, rule], metric), faults


def _hold(table: Table, plan: Plan, given: Round) -> NDArray[np.float64]:
    """Takes the values in; returns them as of now, NaN where absent or older than max_age, (n, M + 1): the last column is ones."""
    rows, at = given.rows, given.at_ns[:, None]
    news = given.values == given.values
    if given.absent is not None:
        news |= given.absent
    held = np.where(news, given.values, table["held"][rows])
    held_at = np.where(news, at, table["held_at_ns"][rows])
    table["held"][rows] = held
    table["held_at_ns"][rows] = held_at
    ones = np.ones((len(rows), len(plan.metrics) + 1))
    ones[:, :-1] = np.where(at - held_at > plan.max_age_ns, np.nan, held)
    due = given.at_ns - table["recent_at_ns"][rows] >= RECENT_STEP_NS
    if due.any():
        those = rows[due]
        count = table["recent_count"][those]
        table["recent"][those, count % RECENT] = ones[due, :-1]
        table["recent_count"][those] = count + 1
        table["recent_at_ns"][those] = given.at_ns[due]
    return ones


def recent(table: Table, row: int, metric: int) -> list[float]:
    """The past values of one metric of one series, oldest first, without those that were not known."""
    count = int(table["recent_count"][row])
    ring = table["recent"][row, :, metric]
    ordered = [float(ring[k % RECENT]) for k in range(max(0, count - RECENT), count)]
    return [x for x in ordered if x == x]


_EMPTY_INDEX = np.empty(0, np.intp)
_EMPTY = np.empty(0)
_NONE = Cells(_EMPTY_INDEX, _EMPTY_INDEX, np.empty(0, np.bool_), np.empty(0, np.int64), _EMPTY, _EMPTY, _EMPTY_INDEX)
