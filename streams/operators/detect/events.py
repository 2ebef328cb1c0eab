"""Turns device events into levels: raised by one, ended by another, by a sample of the device, or by time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.flow import Tick
from schemas.identity import device_entity, node_entity
from schemas.recent import Recent
from schemas.telemetry import v1
from streams.operators.detect.findings import About, finding
from streams.operators.detect.levels import LevelKey, Levels
from streams.rules.condition import EVENT_KINDS, Happened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streams.operators.detect.samples import Times
    from streams.rules.model import Rule


MOST_REMEMBERED: Final = 100_000
"""Levels of which it is known when they last began or ended: as many as there may be devices in one process."""


def _times_ns() -> Recent[LevelKey, int]:
    return Recent(MOST_REMEMBERED)


class Seen(NamedTuple):
    """A value of the device (uid empty: a batch of the source) was read at `at_ns`: whatever was lost is back."""

    cluster: str
    node: str
    uid: str
    source: str
    at_ns: int


def _plain(event: v1.DeviceEvent, entity: str) -> About:
    return About(entity, event.cluster, event.node, event.simulated, words={"uid": event.uid} if event.uid else {})


@dataclass(frozen=True, slots=True)
class _EventRule:
    rule: Rule
    when: Happened
    raised_by: frozenset[int]
    cleared_by: frozenset[int]


@dataclass(slots=True)
class Events:
    """State of the operator. `ended_ns` holds when a level last ended: an older event, or one sent twice, does not raise it again."""

    rules: tuple[_EventRule, ...]
    levels: Levels
    ended_ns: Recent[LevelKey, int] = field(default_factory=_times_ns)
    raised_ns: Recent[LevelKey, int] = field(default_factory=_times_ns)
    about: Callable[[v1.DeviceEvent, str], About] = _plain
    owner: Callable[[v1.DeviceEvent], v1.Workload | None] = lambda _: None


def start(rules: Sequence[Rule], times: Times) -> Events:
    """A fresh state for the event rules among `rules`."""
    chosen = []
    for rule in rules:
        if isinstance(rule.when, Happened):
            raised, cleared = (frozenset(int(EVENT_KINDS[k]) for k in kinds) for kinds in (rule.when.raised_by, rule.when.cleared_by))
            chosen.append(_EventRule(rule, rule.when, raised, cleared))
    return Events(tuple(chosen), Levels(times))


def step(state: Events, items: Sequence[v1.DeviceEvent | Seen | Tick]) -> tuple[Events, list[v1.Finding]]:
    """Findings that begin, end, or are due again."""
    found: list[v1.Finding] = []
    for item in items:
        match item:
            case Tick(at_ns):
                found += _passed(state, at_ns)
            case Seen():
                for r in state.rules:
                    if r.when.cleared_by_sample:
                        found += _clear(state, LevelKey(r.rule.name, item.cluster, _entity(item)), item.at_ns, item.source)
            case _:
                for r in state.rules:
                    found += _happened(state, r, item)
    return state, found


def _entity(item: v1.DeviceEvent | Seen) -> str:
    return device_entity(item.uid) if item.uid else node_entity(item.cluster, item.node)


def _happened(state: Events, r: _EventRule, event: v1.DeviceEvent) -> list[v1.Finding]:
    entity = _entity(event) if r.rule.entity == "device" else node_entity(event.cluster, event.node)
    key = LevelKey(r.rule.name, event.cluster, entity)
    if event.kind in r.cleared_by:
        if event.uid or r.rule.entity == "node":
            return _clear(state, key, event.at_ns, "")
        # an event of the whole source ends what that source said of any device of the node
        same = [
            k for k, v in state.levels.active.items() if k.rule == key.rule and v.finding.node == event.node and k.cluster == event.cluster
        ]
        return [f for k in same for f in _clear(state, k, event.at_ns, event.source)]
    if event.kind not in r.raised_by or (r.when.codes and event.code not in r.when.codes):
        return []
    if event.at_ns <= state.ended_ns.get(key, 0) or event.at_ns <= state.raised_ns.get(key, 0):
        return []
    state.raised_ns[key] = event.at_ns
    times = state.levels.times
    made = finding(
        r.rule,
        state.about(event, entity),
        active=True,
        at_ns=event.at_ns,
        since_ns=event.at_ns,
        valid_until_ns=event.at_ns + times.valid_ns,
        value=float(event.code) if event.HasField("code") else None,
        words={"text": event.text or "no text", "code": str(event.code) if event.HasField("code") else "unknown"},
        evidence={"text": event.text, "source": event.source},
    )
    if (owner := state.owner(event)) is not None:
        made.owner.CopyFrom(owner)
    lasts = r.when.lasts_seconds
    return state.levels.raised(made, until_ns=None if lasts is None else event.at_ns + round(lasts * 1e9), source=event.source)


def _clear(state: Events, key: LevelKey, at_ns: int, source: str) -> list[v1.Finding]:
    level = state.levels.active.get(key)
    if level is not None:
        if at_ns <= state.raised_ns.get(key, level.finding.since_ns) or (source and level.source and source != level.source):
            return []
    elif source:
        return []
    state.ended_ns[key] = max(at_ns, state.ended_ns.get(key, 0))
    return state.levels.cleared(key, at_ns)


def _passed(state: Events, at_ns: int) -> list[v1.Finding]:
    found = []
    for key in state.levels.expired(at_ns):
        state.ended_ns[key] = max(at_ns, state.ended_ns.get(key, 0))
        found += state.levels.cleared(key, at_ns)
    return [*found, *state.levels.repeated(at_ns)]
