"""Holds back anomalies that a context event explains: a deploy, a restart, maintenance or a new configuration is not a fault.

An explained finding is said once, not active and with the event's words; if it outlasts the explanation it is raised with them as
evidence. One that only fades does not: a detector remembers a surprise for a while, and the step of a deploy is one surprise. Facts
(thresholds, events, silence, forecasts) pass through: a card that is too hot is too hot, whatever was deployed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.identity import node_entity, service_entity
from schemas.recent import Recent
from schemas.telemetry import v1
from schemas.values import name_of
from streams.operators.detect.levels import LevelKey, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

EARLY_NS: Final = 60 * 1_000_000_000
"""An event may be dated this long after the onset that it explains: clocks differ, and what reports a deploy does so with a delay."""

EVENTS_KEPT: Final = 4
"""Newest events of each (entity, node): one that explains is at most `explain_ns` old, and a restart loop says the same each time."""

MOST_PLACES: Final = 50_000
"""(Entity, node) pairs whose events are kept; with four events each some 4 KiB."""

MOST_LEVELS: Final = 100_000
"""Anomalies of which it is known whether they were held back. One that is forgotten is judged anew at its next repetition."""

_KINDS: Final = frozenset(
    {
        v1.ContextEventKind.CONTEXT_EVENT_KIND_DEPLOY,
        v1.ContextEventKind.CONTEXT_EVENT_KIND_RESTART,
        v1.ContextEventKind.CONTEXT_EVENT_KIND_MAINTENANCE,
        v1.ContextEventKind.CONTEXT_EVENT_KIND_CONFIGURATION,
    }
)

_Place = tuple[str, str, str]


class Held(NamedTuple):
    """What was done with the level that began at `since_ns`: by `event` held back, or, where `raised`, sent as active. `score` is its
    last one."""

    since_ns: int
    raised: bool
    event: v1.ContextEvent | None
    score: float


def _places() -> Recent[_Place, tuple[v1.ContextEvent, ...]]:
    return Recent(MOST_PLACES)


def _levels() -> Recent[LevelKey, Held]:
    return Recent(MOST_LEVELS)


@dataclass(slots=True)
class Explained:
    """State of the operator. `owners` says who works, or worked until just now, on the device of a finding; `events` are the newest of
    each (cluster, entity, node), with an empty node where the event names none."""

    explain_ns: int
    owners: Callable[[v1.Finding], Iterable[v1.Workload]] = lambda _: ()
    events: Recent[_Place, tuple[v1.ContextEvent, ...]] = field(default_factory=_places)
    levels: Recent[LevelKey, Held] = field(default_factory=_levels)


def step(state: Explained, items: Sequence[v1.ContextEvent | v1.Finding]) -> tuple[Explained, list[v1.Finding]]:
    """The findings to send. An event that arrives after its finding was raised clears it at the next repetition."""
    found: list[v1.Finding] = []
    for item in items:
        if isinstance(item, v1.ContextEvent):
            _happened(state, item)
        elif item.kind != v1.FindingKind.FINDING_KIND_ANOMALY:
            found.append(item)
        else:
            found += _judged(state, item)
    return state, found


def _happened(state: Explained, event: v1.ContextEvent) -> None:
    if event.kind not in _KINDS:
        return
    place = (event.cluster, event.entity, event.node)
    known = state.events.get(place, ())
    if event.id:
        known = tuple(e for e in known if e.id != event.id)
    # In order of their own time and not of arrival: what is read late must not push out what is newer.
    state.events[place] = tuple(sorted((*known, event), key=lambda e: (e.at_ns, e.id)))[-EVENTS_KEPT:]


def _judged(state: Explained, finding: v1.Finding) -> Iterator[v1.Finding]:
    key = key_of(finding)
    held = state.levels.get(key)
    if held is not None and held.since_ns != finding.since_ns:
        held = None
    if not finding.active:
        state.levels.pop(key, None)
        # What was held back has been said to be not active already.
        if held is None or held.raised:
            yield finding
        return
    event = _explaining(state, finding)
    if event is not None and finding.observed_at_ns < _until_ns(state, finding, event):
        if held is None or held.raised:
            yield _explained(finding, event)
        state.levels[key] = Held(finding.since_ns, False, event, finding.score)
        return
    if held is not None and not held.raised and finding.score < held.score:
        state.levels[key] = held._replace(score=finding.score)
        return
    outlasted = event or (held.event if held is not None else None)
    if outlasted is not None:
        finding.evidence["outlasted"] = _told(outlasted)
    if held is None or not held.raised:
        state.levels[key] = Held(finding.since_ns, True, outlasted, finding.score)
    yield finding


def _explaining(state: Explained, finding: v1.Finding) -> v1.ContextEvent | None:
    """The newest event that may have caused what began at `since_ns`."""
    best: v1.ContextEvent | None = None
    if state.explain_ns <= 0:
        return None
    for event in _about(state, finding):
        ended_ns = max(event.at_ns, event.until_ns)
        if not event.at_ns - EARLY_NS <= finding.since_ns <= ended_ns + state.explain_ns:
            continue
        if best is None or (event.at_ns, event.id) > (best.at_ns, best.id):
            best = event
    return best


def _about(state: Explained, finding: v1.Finding) -> Iterator[v1.ContextEvent]:
    """Events of the finding's entity, its node, and the services that work there."""
    cluster, node = finding.cluster, finding.node
    entities = {finding.entity, node_entity(cluster, node)}
    for owner in (finding.owner, *state.owners(finding)):
        if name := owner.service or owner.workload:
            entities.add(service_entity(cluster, owner.namespace, name))
    for entity in entities:
        # An event that names a node is of the instance there: a restart elsewhere explains nothing here.
        for place in {(cluster, entity, node), (cluster, entity, "")}:
            yield from state.events.get(place, ())


def _until_ns(state: Explained, finding: v1.Finding, event: v1.ContextEvent) -> int:
    return max(finding.since_ns, event.at_ns, event.until_ns) + state.explain_ns


def _explained(finding: v1.Finding, event: v1.ContextEvent) -> v1.Finding:
    made = v1.Finding()
    made.CopyFrom(finding)
    made.active = False
    made.explained_by = _told(event)
    if event.id:
        made.evidence["context_event"] = event.id
    return made


def _told(event: v1.ContextEvent) -> str:
    kind = name_of(v1.ContextEventKind.DESCRIPTOR, event.kind)
    return f"{kind} of {event.entity}" + (f": {event.text}" if event.text else "")
