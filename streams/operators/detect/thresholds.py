"""Evaluates all rules over all rows of a round at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streams.operators.detect import counters, held, scoring
from streams.operators.detect.scoring import Detectors, Scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from streams.operators.detect.held import Round
    from streams.operators.detect.plan import Plan
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Places = NDArray[np.intp]


class Cells(NamedTuple):
    """Findings to emit, one per (i, rule): i is the position in the round, `metric` indexes Plan.metrics, `channel` the plan's channels
    (-1: not judged by a score), and `score_of` the rows of `scores`, which are of those whose point ended with the round."""

    i: Places
    rule: Places
    active: Bools
    since_ns: NDArray[np.int64]
    value: Floats
    limit: Floats
    metric: Places
    channel: Places
    score_of: Places
    scores: Scores | None


def define(table: Table, plan: Plan, detectors: Detectors) -> None:
    """The columns that `evaluate` needs."""
    rules = len(plan.rules)
    held.define(table, plan)
    table.define("active", np.bool_, False, rules)
    table.define("since_ns", np.int64, 0, rules)
    table.define("emitted_ns", np.int64, 0, rules)
    counters.define(table, len(plan.increases))
    scoring.define(table, plan, detectors)


def _nothing(i: Places, rule: Places, metric: Places) -> Bools:
    return np.zeros(len(i), np.bool_)


def evaluate(
    table: Table,
    plan: Plan,
    given: Round,
    detectors: Detectors,
    repeat_ns: int,
    veto: Callable[[Places, Places, Places], Bools] = _nothing,
) -> tuple[Cells, int]:
    """Takes a round in; returns what to emit and how many counters went back within an epoch.

    A rule whose value or limit is absent or stale neither fires nor clears nor is repeated: its finding expires ("signal lost"). One that
    is judged by a score is looked at when a point ends.
    `veto` is asked of (positions, rules, metrics) that would fire, and says which are not to, for what is known beside the readings.
    """
    rows, at = given.rows, given.at_ns
    now = held.hold(table, plan, given)
    value, faults = _values(table, plan, given, now)
    channel = np.full(value.shape, -1)
    limit = now[:, plan.of] * plan.times + plan.plus
    guarded = now[:, plan.guard] > plan.guard_above
    was = table["active"][rows]
    scores = None
    score_of = np.full(len(rows), -1)
    if len(plan.scored.rules):
        due = scoring.take(table, plan, given, detectors)
        if len(due):
            scores = scoring.score(table, plan, given, due, now[due], detectors)
            # a plainer rule that fires with this sample is heard as well
            plain = was[due] | ((plan.sign * (value[due] - limit[due]) > 0) & guarded[due])
            _worst(plan, scores, plain, was, due, value, channel)
            score_of[due] = np.arange(len(due))
    margin = plan.sign * (value - limit)
    fires = (margin > 0) & guarded & ~was
    any_was = was.any()
    if not any_was and not fires.any():
        return _NONE, faults

    fires = _allowed(plan, fires, was, channel, veto)
    active, emits = was | fires, fires
    emitted = table["emitted_ns"][rows]
    if any_was:
        clears = was & (plan.sign * (value - (now[:, plan.clear_of] * plan.clear_times + plan.clear_plus)) <= 0)
        passed = at[:, None] - emitted
        # a clock that was set back must not silence a finding until it has caught up
        repeats = was & ~clears & (margin == margin) & ((passed >= repeat_ns) | (passed < 0))
        active, emits = active & ~clears, fires | clears | repeats
    i, rule = np.nonzero(emits)
    if len(i) == 0:
        return _NONE, faults
    row = rows[i]
    table["active"][row, rule] = active[i, rule]
    table["emitted_ns"][row, rule] = at[i]
    begun = fires[i, rule]
    table["since_ns"][row[begun], rule[begun]] = at[i[begun]]
    found = channel[i, rule]
    metric = _metric(plan, rule, found)
    since = table["since_ns"][row, rule]
    return Cells(i, rule, active[i, rule], since, value[i, rule], limit[i, rule], metric, found, score_of[i], scores), faults


def _values(table: Table, plan: Plan, given: Round, now: Floats) -> tuple[Floats, int]:
    """What each rule compares (n, R), NaN where it is not known or, of scored rules, not yet; and the counters that went back."""
    value = now[:, plan.left]
    faults = 0
    if len(plan.increases):
        metrics = given.values[:, plan.increase_metric]
        grown, faults = counters.increase(table, given.rows, given.at_ns, given.epoch, metrics, plan.increase_within_ns)
        value[:, plan.increases] = grown + 0.0 * value[:, plan.increases]  # stays NaN where the counter is not known
    if len(plan.bits):
        raw = value[:, plan.bits]
        unknown = np.isnan(raw)
        value[:, plan.bits] = np.where(unknown, np.nan, np.where(unknown, 0, raw).astype(np.int64) & plan.masks)
    if len(plan.equals):
        raw = value[:, plan.equals]
        value[:, plan.equals] = (raw == plan.equal_to) + 0.0 * raw
    if len(plan.ghosts):
        # busy with nothing in memory, and nobody known to use it: how busy; else not at all
        memory, using = now[:, plan.memory, None], held.users(table, given)[:, None]
        most = np.where(np.isnan(using), plan.ghost_memory[1], np.where(using > 0, 0.0, plan.ghost_memory[0]))
        busy = value[:, plan.ghosts]
        value[:, plan.ghosts] = np.where(np.isnan(memory), np.nan, np.where(memory < most, busy, 0.0 * busy))
    value[:, plan.scored.rules] = np.nan
    return value, faults


def _worst(plan: Plan, scores: Scores, plain: Bools, was: Bools, due: Places, value: Floats, channel: Places) -> None:
    """Fills in the scored rules at `due`: each has the score of its worst channel. What an active plainer rule says already raises
    nothing, but does not clear what stands."""
    scored = plan.scored
    known = ~np.isnan(scores.score)
    said = plain @ scored.said.T if plain.any() else np.zeros(known.shape, np.bool_)
    each = np.arange(len(due))
    for s, r in enumerate(scored.rules.tolist()):
        counts = scored.uses[s] & known & (~said | was[due, r, None])
        mine = np.where(counts, scores.score, -1.0)
        best = mine.argmax(axis=1)
        top = mine[each, best]
        value[due, r] = np.where(top < 0, np.nan, top)
        channel[due, r] = best


def _allowed(plan: Plan, fires: Bools, was: Bools, channel: Places, veto: Callable[[Places, Places, Places], Bools]) -> Bools:
    """`fires` without what another rule that stands or fires forbids, and without what is vetoed."""
    if plan.unless.any():
        fires = fires & ~((was | fires) @ plan.unless.T)
    i, rule = np.nonzero(fires)
    if len(i) and (no := veto(i, rule, _metric(plan, rule, channel[i, rule]))).any():
        fires = fires.copy()
        fires[i[no], rule[no]] = False
    return fires


def _metric(plan: Plan, rule: Places, channel: Places) -> Places:
    if not len(plan.scored.channels):
        return plan.left[rule]
    metric: Places = np.where(channel < 0, plan.left[rule], plan.scored.metric[channel])
    return metric


_EMPTY_INDEX = np.empty(0, np.intp)
_EMPTY = np.empty(0)
_NONE = Cells(
    _EMPTY_INDEX, _EMPTY_INDEX, np.empty(0, np.bool_), np.empty(0, np.int64), _EMPTY, _EMPTY, _EMPTY_INDEX, _EMPTY_INDEX, _EMPTY_INDEX, None
)
