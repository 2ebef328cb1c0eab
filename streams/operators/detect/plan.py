"""Compiles rules into index arrays once, so that all of them are evaluated over all rows of a batch in a few numpy calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

import numpy as np

from schemas.catalogue import BY_NAME
from streams.rules.condition import (
    SERVICE_METRICS,
    Above,
    Anomalous,
    Below,
    BitsSet,
    Equals,
    Forecasted,
    Guard,
    Happened,
    Increases,
    Limit,
    RatioAbove,
    Silent,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streams.rules.model import Rule

SERVICE_MAX_AGE_NS: Final = 60_000_000_000
"""A service's gauge is held this long: several of the 5 to 15 s windows that inference servers are read in."""


@dataclass(frozen=True, slots=True)
class Plan:
    """R rules over M metrics. A limit is `held[:, of] * times + plus`; `of` M is a column of ones.

    The left side of rule r is `held[:, left[r]]`, or, at the positions in `increases`, `bits`, `equals` and `anomalies`, what those make of
    it. `sign` is +1 where odd means above, -1 where it means below.
    """

    rules: tuple[Rule, ...]
    metrics: tuple[str, ...]
    max_age_ns: NDArray[np.int64]
    left: NDArray[np.intp]
    sign: NDArray[np.float64]
    of: NDArray[np.intp]
    times: NDArray[np.float64]
    plus: NDArray[np.float64]
    clear_of: NDArray[np.intp]
    clear_times: NDArray[np.float64]
    clear_plus: NDArray[np.float64]
    guard: NDArray[np.intp]
    guard_above: NDArray[np.float64]
    increases: NDArray[np.intp]
    increase_metric: NDArray[np.intp]
    increase_within_ns: NDArray[np.int64]
    bits: NDArray[np.intp]
    masks: NDArray[np.int64]
    equals: NDArray[np.intp]
    equal_to: NDArray[np.float64]
    anomalies: NDArray[np.intp]
    anomaly_metric: NDArray[np.intp]
    anomaly_uses: NDArray[np.bool_]
    """(rules of type anomaly, columns of anomaly_metric): which of them a rule looks at."""


@dataclass(slots=True)
class _Side:
    left: str
    sign: float
    limit: Limit
    clear: Limit
    guard: Guard | None = None


_ZERO: Final = Limit(plus=0.0)
_HALF: Final = Limit(plus=0.5)


def compile_rules(rules: Sequence[Rule], extra_metrics: Sequence[str] = ()) -> Plan:
    """The plan of the rules that compare values (others are left out); `extra_metrics` are held too, for evidence."""
    chosen: list[Rule] = []
    sides: list[_Side] = []
    for rule in rules:
        side = _side(rule)
        if side is not None:
            chosen.append(rule)
            sides.append(side)
    names: dict[str, int] = {}
    anomalous: dict[str, int] = {}
    for rule, side in zip(chosen, sides, strict=True):
        wanted: list[str | None] = [side.left, side.limit.of, side.clear.of, side.guard.metric if side.guard else None]
        if isinstance(rule.when, Anomalous):
            wanted += rule.when.metrics
            for name in rule.when.metrics:
                anomalous.setdefault(name, len(anomalous))
        for needed in wanted:
            if needed is not None:
                names.setdefault(needed, len(names))
    for name in extra_metrics:
        names.setdefault(name, len(names))
    ones = len(names)

    def column(name: str | None) -> int:
        return ones if name is None else names[name]

    where: dict[type, list[int]] = {Increases: [], BitsSet: [], Equals: [], Anomalous: []}
    for i, rule in enumerate(chosen):
        where.get(type(rule.when), []).append(i)
    increasing = [r.when for r in chosen if isinstance(r.when, Increases)]
    anomalies = [r.when for r in chosen if isinstance(r.when, Anomalous)]
    return Plan(
        rules=tuple(chosen),
        metrics=tuple(names),
        max_age_ns=np.array([SERVICE_MAX_AGE_NS if n in SERVICE_METRICS else BY_NAME[n].max_age_ns for n in names], np.int64),
        left=np.array([names[s.left] for s in sides], np.intp),
        sign=np.array([s.sign for s in sides], np.float64),
        of=np.array([column(s.limit.of) for s in sides], np.intp),
        times=np.array([s.limit.times if s.limit.of else 0.0 for s in sides], np.float64),
        plus=np.array([s.limit.plus for s in sides], np.float64),
        clear_of=np.array([column(s.clear.of) for s in sides], np.intp),
        clear_times=np.array([s.clear.times if s.clear.of else 0.0 for s in sides], np.float64),
        clear_plus=np.array([s.clear.plus for s in sides], np.float64),
        guard=np.array([column(s.guard.metric if s.guard else None) for s in sides], np.intp),
        guard_above=np.array([s.guard.above if s.guard else 0.0 for s in sides], np.float64),
        increases=np.array(where[Increases], np.intp),
        increase_metric=np.array([names[w.metric] for w in increasing], np.intp),
        increase_within_ns=np.array([round(w.within_seconds * 1e9) for w in increasing], np.int64),
        bits=np.array(where[BitsSet], np.intp),
        masks=np.array([r.when.mask for r in chosen if isinstance(r.when, BitsSet)], np.int64),
        equals=np.array(where[Equals], np.intp),
        equal_to=np.array([r.when.value for r in chosen if isinstance(r.when, Equals)], np.float64),
        anomalies=np.array(where[Anomalous], np.intp),
        anomaly_metric=np.array([names[n] for n in anomalous], np.intp),
        anomaly_uses=np.array([[n in w.metrics for n in anomalous] for w in anomalies], np.bool_).reshape(len(anomalies), len(anomalous)),
    )


def _side(rule: Rule) -> _Side | None:
    """How a rule compares; None where it does not compare values."""
    match rule.when:
        case Above() as w:
            return _Side(w.metric, 1.0, w.limit, w.clear, w.guard)
        case Below() as w:
            return _Side(w.metric, -1.0, w.limit, w.clear, w.guard)
        case RatioAbove() as w:
            limit = Limit(of=w.of, times=w.limit)
            return _Side(w.metric, 1.0, limit, Limit(of=w.of, times=w.clear_limit or w.limit), w.guard)
        case Increases() as w:
            limit = Limit(plus=w.more_than)
            return _Side(w.metric, 1.0, limit, limit)
        case BitsSet() as w:
            return _Side(w.metric, 1.0, _ZERO, _ZERO)
        case Equals() as w:
            return _Side(w.metric, 1.0, _HALF, _HALF)
        case Anomalous() as w:
            # a tie of score and boundary is odd, by the contract of scores: just below it the limit is strict
            just_below = Limit(plus=float(np.nextafter(w.score, 0)))
            return _Side(w.metrics[0], 1.0, just_below, Limit(plus=w.clear_score))
        case Silent() | Happened() | Forecasted():
            return None
        case other:
            assert_never(other)
