"""Compiles rules into index arrays once, so that all of them are evaluated over all rows of a batch in a few numpy calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

import numpy as np

from schemas.catalogue import BY_NAME
from streams.operators.detect import peers
from streams.operators.detect.channels import Channel, asked, channels, said_already
from streams.rules.condition import (
    SCORED,
    Above,
    Anomalous,
    Below,
    Beyond,
    BitsSet,
    Bursting,
    Equals,
    Forecasted,
    Ghost,
    Guard,
    Happened,
    Increases,
    Limit,
    RatioAbove,
    Residual,
    Silent,
    Unlike,
)
from streams.rules.vocabulary import SERVICE_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from streams.rules.model import Rule

SERVICE_MAX_AGE_NS: Final = 60_000_000_000
"""A service's gauge is held this long: several of the 5 to 15 s windows that inference servers are read in."""


@dataclass(frozen=True, slots=True)
class Plan:
    """R rules over M metrics. A limit is `held[:, of] * times + plus`; `of` M is a column of ones.

    The left side of rule r is `held[:, left[r]]`, or, at the positions in `increases`, `bits`, `equals`, `ghosts` and `scored`, what those
    make of it. `sign` is +1 where odd means above, -1 where it means below.
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
    ghosts: NDArray[np.intp]
    ghost_memory: NDArray[np.float64]
    """(2, ghosts): bytes below which there is nothing in it, where nobody uses it and where that is not known."""
    memory: int
    """Column of the used memory, where there are ghosts."""
    scored: Scored
    unless: NDArray[np.bool_]
    """(R, R): whether the rule of the column keeps that of the row from being raised."""
    shown: NDArray[np.intp]
    """Columns whose recent shape is kept."""


@dataclass(frozen=True, slots=True)
class Scored:
    """S rules judged by C channels. `metric` (C,), `averaged` (what points are made of), `bursts`, `power_limit` and `reasons` are columns
    of the held values; `anomalies`, `peers` and `residuals` are positions in `averaged`. `uses` (S, C): the channels a rule looks at;
    `said` (C, R): active rules that say already what one says."""

    rules: NDArray[np.intp]
    channels: tuple[Channel, ...]
    metric: NDArray[np.intp]
    uses: NDArray[np.bool_]
    said: NDArray[np.bool_]
    averaged: NDArray[np.intp]
    anomalies: NDArray[np.intp]
    bursts: NDArray[np.intp]
    peers: NDArray[np.intp]
    power_limit: int
    reasons: int
    residuals: NDArray[np.intp]
    loads: NDArray[np.intp]
    """(2, P) positions in `averaged`: metrics and the loads they follow; and `least` (P,), see `beyond`."""
    least: NDArray[np.float64]


@dataclass(slots=True)
class _Side:
    left: str
    sign: float
    limit: Limit
    clear: Limit
    guard: Guard | None = None


LOAD: Final = "utilization_ratio"
MEMORY: Final = "memory_used_bytes"
GHOST_CLEAR_RATIO: Final = 0.9
"""A ghost that is this much less busy than it takes to be one is none any more."""

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
    for rule, side in zip(chosen, sides, strict=True):
        for needed in (side.left, side.limit.of, side.clear.of, side.guard.metric if side.guard else None, *_wanted(rule)):
            if needed is not None:
                names.setdefault(needed, len(names))
    if any(isinstance(rule.when, Unlike) for rule in rules):
        extra_metrics = (*extra_metrics, *peers.METRICS)
    for name in extra_metrics:
        names.setdefault(name, len(names))
    ones = len(names)

    def column(name: str | None) -> int:
        return ones if name is None else names[name]

    where: dict[type, list[int]] = {Increases: [], BitsSet: [], Equals: [], Ghost: []}
    for i, rule in enumerate(chosen):
        where.get(type(rule.when), []).append(i)
    increasing = [r.when for r in chosen if isinstance(r.when, Increases)]
    ghosts = [r.when for r in chosen if isinstance(r.when, Ghost)]
    scored = _scored(chosen, sides, names, peered=LOAD in names and any(isinstance(rule.when, Unlike) for rule in rules))
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
        ghosts=np.array(where[Ghost], np.intp),
        ghost_memory=np.array([[w.memory_below_bytes for w in ghosts], [w.unknown_memory_below_bytes for w in ghosts]], np.float64),
        memory=names.get(MEMORY, 0),
        scored=scored,
        unless=np.array([[other.name in rule.unless for other in chosen] for rule in chosen], np.bool_).reshape(len(chosen), len(chosen)),
        shown=np.array(sorted({names[s.left] for s in sides} | set(scored.metric.tolist())), np.intp),
    )


def _wanted(rule: Rule) -> tuple[str, ...]:
    """Metrics that a rule needs beside those it compares."""
    match rule.when:
        case Anomalous() | Residual():
            return rule.when.metrics
        case Bursting():
            return rule.when.counters
        case Beyond():
            return (rule.when.metric, rule.when.load)
        case Ghost():
            return (MEMORY,)
        case _:
            return ()


def _scored(chosen: Sequence[Rule], sides: Sequence[_Side], names: Mapping[str, int], *, peered: bool) -> Scored:
    found = channels(chosen)
    judged = [i for i, rule in enumerate(chosen) if isinstance(rule.when, SCORED)]

    usual = [c.metric for c in found if c.kind == "usual"]
    together = list(dict.fromkeys(m for rule in chosen if isinstance(rule.when, Residual) for m in rule.when.metrics))
    compared = peers.AVERAGED if peered else ()
    loaded = [c for c in found if c.kind == "load"]
    followed = ([c.metric for c in loaded], [c.load for c in loaded])
    averaged = list(dict.fromkeys((*usual, *compared, *together, *followed[0], *followed[1])))

    def within(wanted: Iterable[str]) -> NDArray[np.intp]:
        return np.array([averaged.index(name) for name in wanted], np.intp)

    return Scored(
        rules=np.array(judged, np.intp),
        channels=tuple(found),
        metric=np.array([names[c.metric] for c in found], np.intp),
        uses=np.array([[c in asked(chosen[i].when) for c in found] for i in judged], np.bool_).reshape(len(judged), len(found)),
        said=said_already(found, chosen, [s.left for s in sides]),
        averaged=np.array([names[name] for name in averaged], np.intp),
        anomalies=within(usual),
        bursts=np.array([names[c.metric] for c in found if c.kind == "burst"], np.intp),
        peers=within(compared),
        power_limit=names.get(peers.LIMIT, 0),
        reasons=names.get(peers.REASONS, 0),
        residuals=within(together),
        loads=np.array([within(names_) for names_ in followed], np.intp).reshape(2, len(loaded)),
        least=np.array([c.least for c in loaded], np.float64),
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
        case Ghost() as w:
            return _Side(LOAD, 1.0, Limit(plus=w.busy_above), Limit(plus=w.busy_above * GHOST_CLEAR_RATIO))
        case Unlike(among="model"):
            return None
        case Anomalous() | Bursting() | Unlike() | Residual() | Beyond() as w:
            # a tie of score and boundary is odd, by the contract of scores: just below it the limit is strict
            just_below = Limit(plus=float(np.nextafter(w.score, 0)))
            return _Side(asked(w)[0].metric, 1.0, just_below, Limit(plus=w.clear_score))
        case Silent() | Happened() | Forecasted():
            return None
        case other:
            assert_never(other)
