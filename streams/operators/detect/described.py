"""Puts the findings of a round into messages: value, limit, what was expected, recent shape, and words for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from schemas.catalogue import BY_NAME, state_name, throttle_names
from streams.operators.detect import held
from streams.operators.detect.findings import Judged, Shape, finding, unit_of
from streams.operators.detect.scoring import DETECTORS
from streams.operators.detect.wording import duration, quantity
from streams.rules.condition import SCORED, BitsSet, Equals, Ghost

if TYPE_CHECKING:
    from schemas.telemetry import v1
    from streams.operators.detect.findings import About
    from streams.operators.detect.plan import Plan
    from streams.operators.detect.table import Table
    from streams.operators.detect.thresholds import Cells

RECENT_SAID: Final = 8
"""Newest values of the shape that the evidence says in words."""


def describe(table: Table, plan: Plan, cells: Cells, k: int, *, row: int, at_ns: int, valid_ns: int, about: About) -> v1.Finding:
    """The k-th finding of a round."""
    rule, column = plan.rules[int(cells.rule[k])], int(cells.metric[k])
    metric = plan.metrics[column]
    value = float(cells.value[k])
    limit: float | None = float(cells.limit[k])
    now = float(table["held"][row, column])
    words: dict[str, str] = {}
    evidence: dict[str, str] = {}
    judged: Judged | None = None
    match rule.when:
        case BitsSet():
            words["value"] = ", ".join(throttle_names(int(value))) or "none"
            limit = None
        case Equals(value=wanted):
            value, limit = now, wanted
        case Ghost():
            value = now
            unknown = math.isnan(float(table["users"][row]))
            evidence["processes"] = "not known" if unknown else "none"
            evidence["memory"] = quantity(float(table["held"][row, plan.memory]), "By")
        case when if isinstance(when, SCORED):
            metric, value, limit, judged = _judged(plan, cells, k, metric)
            words["probability"] = f"{judged.score:.2f}"
            evidence |= _beside(plan, cells, k)
        case _ if metric in BY_NAME and BY_NAME[metric].states:
            words["value"] = state_name(BY_NAME[metric], value)
            limit = None
        case _:
            pass
    shape = held.recent(table, plan, row, column, at_ns=at_ns, value=now) if metric else []
    unit, ratio = unit_of(metric)
    if not isinstance(rule.when, BitsSet | Equals) and (past := [x for x in shape[-1 - RECENT_SAID : -1] if not math.isnan(x)]):
        evidence["recent"] = " ".join(quantity(x, unit, ratio=ratio) for x in past)
    return finding(
        rule,
        about,
        active=bool(cells.active[k]),
        at_ns=at_ns,
        since_ns=int(cells.since_ns[k]),
        valid_until_ns=at_ns + valid_ns,
        value=None if math.isnan(value) else value,
        limit=limit,
        metric=metric,
        words=words,
        evidence={**words, **evidence},
        judged=judged,
        shape=Shape(shape, held.RECENT_STEP_NS),
    )


def _judged(plan: Plan, cells: Cells, k: int, metric: str) -> tuple[str, float, float | None, Judged]:
    """Metric, value, the edge of what was expected that it lies beyond, and the judgement. A residual is of no metric."""
    assert cells.scores is not None  # only a scored rule asks
    scores, i, c = cells.scores, int(cells.score_of[k]), int(cells.channel[k])
    kind = plan.scored.channels[c].kind
    value, low, high = (float(a[i, c]) for a in (scores.value, scores.low, scores.high))
    judged = Judged(float(cells.value[k]), DETECTORS[int(scores.detector[i, c])], low, high)
    below = kind == "below" or (kind == "usual" and value < low)
    edge = low if below else high
    return "" if kind == "residual" else metric, value, None if math.isnan(edge) else edge, judged


def _beside(plan: Plan, cells: Cells, k: int) -> dict[str, str]:
    """Other metrics of the same rule that are beyond the boundary too, the worst first; and in what time a burst came."""
    assert cells.scores is not None  # only a scored rule asks
    scores, i, c = cells.scores, int(cells.score_of[k]), int(cells.channel[k])
    uses = plan.scored.uses[int(np.searchsorted(plan.scored.rules, cells.rule[k]))]
    others = [(float(scores.score[i, o]), plan.scored.channels[o].metric) for o in np.flatnonzero(uses).tolist() if o != c]
    also = [f"{metric} {score:.2f}" for score, metric in sorted(others, reverse=True) if score >= 0.5]
    said = {"also": ", ".join(also)} if also else {}
    if not math.isnan(seconds := float(scores.seconds[i, c])):
        said["within"] = duration(seconds)
    return said
