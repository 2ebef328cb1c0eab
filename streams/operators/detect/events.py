"""Turns device events into levels: raised by one, ended by another, by a sample of the device, or by time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.flow import Tick
from schemas.identity import device_entity, node_entity
from schemas.recent import Recent
from schemas.telemetry import v1
from schemas.values import name_of
from schemas.xid import catalogue
from streams.operators.detect.findings import About, finding
from streams.operators.detect.levels import LevelKey, Levels
from streams.rules.condition import Happened
from streams.rules.vocabulary import EVENT_CLASSES, EVENT_KINDS, EVENT_SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streams.operators.detect.samples import Times
    from streams.rules.model import Rule


MOST_REMEMBERED: Final = 100_000
"""Levels of which it is known when they last began or ended: as many as there may be devices in one process."""


_SAMPLES_NOTHING: Final = frozenset({"kernel"})
"""Sources that tell of devices and read none: a sample by any other ends what they said."""


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
    severities: frozenset[int]
    classes: frozenset[int]


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
            severities = frozenset(int(EVENT_SEVERITIES[s]) for s in rule.when.severities)
            classes = frozenset(int(EVENT_CLASSES[c]) for c in rule.when.classes)
            chosen.append(_EventRule(rule, rule.when, raised, cleared, severities, classes))
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
    at_ns = _newest_ns(event)
    if event.kind in r.cleared_by:
        if event.uid or event.bdf or r.rule.entity == "node":  # one device, even where only its address is known
            return _clear(state, key, at_ns, "")
        # an event of the whole source ends what that source said of any device of the node
        same = [
            k for k, v in state.levels.active.items() if k.rule == key.rule and v.finding.node == event.node and k.cluster == event.cluster
        ]
        return [f for k in same for f in _clear(state, k, at_ns, event.source)]
    if not _raises(r, event):
        return []
    if at_ns <= state.ended_ns.get(key, 0) or at_ns <= state.raised_ns.get(key, 0):
        return []
    state.raised_ns[key] = at_ns
    times = state.levels.times
    made = finding(
        r.rule,
        state.about(event, entity),
        active=True,
        at_ns=at_ns,
        since_ns=event.at_ns,
        valid_until_ns=at_ns + times.valid_ns,
        value=float(event.code) if event.HasField("code") else None,
        words={"text": event.text or "no text", "code": str(event.code) if event.HasField("code") else "unknown"},
        evidence=_evidence(event),
    )
    if (owner := state.owner(event)) is not None:
        made.owner.CopyFrom(owner)
    lasts = _lasts_seconds(r.when, event)
    source = "" if r.when.cleared_by_sample and event.source in _SAMPLES_NOTHING else event.source
    return state.levels.raised(made, until_ns=None if lasts is None else at_ns + round(lasts * 1e9), source=source)


def _raises(r: _EventRule, event: v1.DeviceEvent) -> bool:
    """What follows from another event says nothing by itself: its cause has the alert."""
    when = r.when
    return (
        event.kind in r.raised_by
        and not event.caused_by
        and (not when.codes or event.code in when.codes)
        and _fits(r, event)
        and max(event.count, 1) >= when.seen_at_least
    )


def _fits(r: _EventRule, event: v1.DeviceEvent) -> bool:
    """By the event's own severity and class; an Xid without a class (a source that knows the number only) by the catalogue's."""
    severity, event_class = int(event.severity), int(event.event_class)
    if event.kind == v1.DeviceEventKind.DEVICE_EVENT_KIND_XID and not event_class and event.HasField("code"):
        row = catalogue().row(event.code)
        severity, event_class = int(EVENT_SEVERITIES[row.severity]), int(EVENT_CLASSES[row.event_class])
    return (not r.severities or severity in r.severities) and (not r.classes or event_class in r.classes)


def _newest_ns(event: v1.DeviceEvent) -> int:
    """When it was last seen: a later version of an event goes on; what was old when it was read counts from then."""
    return max(event.at_ns, event.last_at_ns, _number(event, "seen_at_ns"))


def _lasts_seconds(when: Happened, event: v1.DeviceEvent) -> float | None:
    said = _number(event, "quiet_seconds")
    if when.lasts_seconds is None:
        return None
    return min(float(said), when.lasts_seconds) if said else when.lasts_seconds


def _number(event: v1.DeviceEvent, name: str) -> int:
    text = event.details.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _evidence(event: v1.DeviceEvent) -> dict[str, str]:
    found = {"text": event.text, "source": event.source}
    if event.action:
        found["action"] = name_of(v1.RecommendedAction.DESCRIPTOR, event.action)
    if event.count > 1:
        found["count"] = str(event.count)
    if event.process_name:
        found["process"] = event.process_name
    if event.id:
        found["event"] = event.id
    return found


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
