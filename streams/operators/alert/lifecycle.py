"""Carries every open episode through its life as findings come and time passes.

A finding counts only if it was observed after the last one that counted for the same rule and entity: a replay, or a detector that
says the same again after a restart, changes nothing. Transitions that time brings happen at their own event time and not at that
of the Tick which brought them to light, the earlier first.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from schemas.flow import Tick
from schemas.identity import fingerprint
from schemas.telemetry import v1
from streams.operators.alert import episode, incidents
from streams.operators.alert.episode import FIRING, NOTHING, PENDING, Due
from streams.operators.alert.incidents import Grouping, Incidents
from streams.operators.alert.outbox import Drop, Effect, Save, Transition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Observed(NamedTuple):
    """A finding and its offset on the findings topic."""

    finding: v1.Finding
    offset: int


Item = Observed | Tick


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """`keep_firing_ns` is added to a rule's own clear time, `grace_ns` to a finding's validity before its signal counts as lost.

    An episode whose value alone changes is written down at most every `save_ns`; of `remembered` closed episodes is known when they ended.
    """

    keep_firing_ns: int
    grace_ns: int
    save_ns: int
    remembered: int
    grouping: Grouping = field(default_factory=Grouping)


@dataclass(slots=True)
class _Open:
    state: v1.AlertState
    saved_at_ns: int
    due: Due = field(default=NOTHING)
    not_lost_before_ns: int = 0


@dataclass(slots=True)
class State:
    """Open episodes by fingerprint; of closed ones the event time before which findings belong to them.

    `spared` are restored episodes: their findings could not be renewed while nobody listened, so that their validity counts again
    from the first Tick.
    """

    rules: Lifecycle
    open: dict[str, _Open] = field(default_factory=dict)
    closed: OrderedDict[str, int] = field(default_factory=OrderedDict)
    spared: set[str] = field(default_factory=set)
    repeated: int = 0
    incidents: Incidents = field(init=False)

    def __post_init__(self) -> None:
        self.incidents = Incidents(self.rules.grouping)


def empty(rules: Lifecycle) -> State:
    return State(rules)


def adopt(state: State, restored: v1.AlertState) -> None:
    """Take over an open episode from its written state."""
    kept = v1.AlertState()
    kept.CopyFrom(restored)
    kept.ClearField("unpublished")
    one = _Open(kept, kept.last_finding.observed_at_ns)
    state.open[kept.alert.fingerprint] = one
    state.spared.add(kept.alert.fingerprint)
    if kept.alert.status == FIRING:
        incidents.adopt(state.incidents, kept.alert)
    _plan(state, one)


def recall(state: State, resolved: v1.Alert) -> None:
    """An episode that was over before the restart: its findings are not lived again, its incident may be joined."""
    remember(state, resolved.fingerprint, resolved.at_ns)
    incidents.recall(state.incidents, resolved)


def remember(state: State, name: str, until_ns: int) -> None:
    """Findings of this alert that were observed before then belong to an episode that is over.

    Not one observed at that very instant: it may be what ended the clear time of one episode and began the next.
    """
    state.closed[name] = max(until_ns, state.closed.pop(name, 0))
    while len(state.closed) > state.rules.remembered:
        state.closed.popitem(last=False)


def step(state: State, items: Sequence[Item]) -> tuple[State, list[Effect]]:
    effects: list[Effect] = []
    for item in items:
        effects += _observe(state, item) if isinstance(item, Observed) else _pass(state, item.at_ns)
    return state, effects


def _observe(state: State, item: Observed) -> Iterator[Effect]:
    finding, offset = item
    name = fingerprint(finding.rule, finding.cluster, finding.entity)
    at_ns = finding.observed_at_ns
    one = state.open.get(name)
    if at_ns <= one.state.last_finding.observed_at_ns if one else at_ns < state.closed.get(name, 0):
        state.repeated += 1
        return
    if one is not None:
        # What was due before this finding came first. A lost signal is not: here it is, late.
        while one is not None and one.due.at_ns <= at_ns and one.due.what in ("fire", "recover"):
            yield from _happen(state, name, one)
            one = state.open.get(name)
    if one is None:
        if not finding.active:
            remember(state, name, at_ns)
            return
        one = _Open(episode.begin(finding, offset, closed_at_ns=state.closed.get(name, 0)), at_ns)
        state.open[name] = one
        changed = True
    else:
        before = episode.terms(one.state)
        episode.take(one.state, finding, offset)
        changed = episode.terms(one.state) != before
        one.not_lost_before_ns = 0
        state.spared.discard(name)
    if one.state.alert.status == PENDING:
        if not finding.active:
            yield _close(state, name, at_ns)
            return
        if one.state.alert.started_at_ns + one.state.hold_ns <= at_ns:
            episode.fire(one.state, at_ns)
            yield _transition(state, one)
            return
    _plan(state, one)
    if one.due.what == "recover" and one.due.at_ns <= at_ns:
        yield from _happen(state, name, one)
    elif changed or at_ns - one.saved_at_ns >= state.rules.save_ns:
        one.saved_at_ns = at_ns
        yield Save(_copy(one.state))


def _pass(state: State, at_ns: int) -> Iterator[Effect]:
    for name in state.spared:
        one = state.open[name]
        last = one.state.last_finding
        one.not_lost_before_ns = at_ns + max(last.valid_until_ns - last.observed_at_ns, 0) + state.rules.grace_ns
        _plan(state, one)
    state.spared.clear()
    waiting = [(one.due.at_ns, name) for name, one in state.open.items() if one.due.at_ns <= at_ns]
    heapq.heapify(waiting)
    while waiting:
        _, name = heapq.heappop(waiting)
        yield from _happen(state, name, state.open[name])
        if (left := state.open.get(name)) is not None and left.due.at_ns <= at_ns:
            heapq.heappush(waiting, (left.due.at_ns, name))
    incidents.forget(state.incidents, at_ns)


def _happen(state: State, name: str, one: _Open) -> Iterator[Effect]:
    """What was due comes to pass, at its own time."""
    at_ns = one.due.at_ns
    match one.due.what:
        case "fire":
            episode.fire(one.state, at_ns)
            yield _transition(state, one)
        case "recover":
            episode.resolve(one.state, at_ns, v1.ResolveReason.RESOLVE_REASON_RECOVERED)
            yield _transition(state, one)
        case "lose" if one.state.alert.status == FIRING:
            episode.resolve(one.state, at_ns, v1.ResolveReason.RESOLVE_REASON_SIGNAL_LOST)
            yield _transition(state, one)
        case "lose":
            yield _close(state, name, one.state.last_finding.observed_at_ns + 1)
        case "nothing":
            return


def _transition(state: State, one: _Open) -> Transition:
    alert = one.state.alert
    if alert.status == FIRING:
        alert.incident = incidents.join(state.incidents, alert)
    else:
        incidents.leave(state.incidents, alert)
    told = Transition(_copy(one.state))
    one.state.ClearField("unpublished")
    one.saved_at_ns = one.state.last_finding.observed_at_ns
    if alert.status == FIRING:
        _plan(state, one)
    else:
        _close(state, alert.fingerprint, alert.at_ns)
    return told


def _close(state: State, name: str, at_ns: int) -> Drop:
    del state.open[name]
    state.spared.discard(name)
    remember(state, name, at_ns)
    return Drop(name)


def _plan(state: State, one: _Open) -> None:
    rules = state.rules
    one.due = episode.due(
        one.state, keep_firing_ns=rules.keep_firing_ns, grace_ns=rules.grace_ns, not_lost_before_ns=one.not_lost_before_ns
    )


def _copy(state: v1.AlertState) -> v1.AlertState:
    copied = v1.AlertState()
    copied.CopyFrom(state)
    return copied
