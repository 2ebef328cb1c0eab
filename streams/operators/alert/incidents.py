"""Puts alerts that one fault causes into one incident: its first alert leads, later ones of the same place and kind join it.

An incident is known by its leader's episode. What decides is only what alert-state and the last hour of alerts tell again, so that a
restart puts a replayed alert where it was. Nothing is hidden here: every transition is published, with the incident it belongs to.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.telemetry import v1
from streams.rules.families import family_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.rules.families import Family

_HOUR_NS: Final = 3600 * 1_000_000_000
_SHADOW: Final = v1.AlertMode.ALERT_MODE_SHADOW

NODES: Final = 5
"""One rule on so many nodes of a cluster within the window has one cause, wherever they stand."""

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """An alert joins an incident of its place that took in another within `window_ns`; an incident that is over may go on within
    `linger_ns`. What befalls one device within `device_ns` belongs together, whatever the rule."""

    window_ns: int = 900 * 1_000_000_000
    linger_ns: int = 300 * 1_000_000_000
    device_ns: int = _HOUR_NS


class Place(NamedTuple):
    """Where another alert must have fired, and how long before or after; None: as long as it is open."""

    key: Key
    within_ns: int | None


@dataclass(slots=True)
class _Presence:
    """An incident at a place: when it last took an alert in there, how many are open, and when the last of them ended."""

    fired_ns: int = 0
    open: int = 0
    left_ns: int = 0


@dataclass(slots=True)
class Incidents:
    """`members`: incident and keys of each open alert by fingerprint; `nodes`: when each node of a (cluster, rule) last fired."""

    grouping: Grouping
    places: dict[Key, dict[str, _Presence]] = field(default_factory=dict)
    members: dict[str, tuple[str, tuple[Key, ...]]] = field(default_factory=dict)
    nodes: dict[Key, OrderedDict[str, int]] = field(default_factory=dict)
    _left: deque[tuple[int, Key, str]] = field(default_factory=deque)

    @property
    def open(self) -> int:
        """Incidents with an open alert."""
        return len({incident for incident, _ in self.members.values()})


def join(state: Incidents, alert: v1.Alert) -> str:
    """The incident of an alert that fires now (at its `fired_at_ns`): one that is there, or one of its own."""
    family = family_of(alert.rule, alert.metric)
    places = [*_places(alert, family, state.grouping)]
    incident = _found(state, alert, [*places, *_everywhere(state, alert, family)]) or alert.episode
    _enter(state, alert, incident, [place.key for place in places])
    return incident


def adopt(state: Incidents, alert: v1.Alert) -> None:
    """Take over an alert that fires, from its written state."""
    _enter(state, alert, alert.incident or alert.episode, _keys(alert, state.grouping))


def leave(state: Incidents, alert: v1.Alert) -> None:
    """The alert is resolved."""
    incident, keys = state.members.pop(alert.fingerprint, ("", ()))
    for key in keys:
        presence = state.places[key][incident]
        presence.open -= 1
        presence.left_ns = max(presence.left_ns, alert.at_ns)
        state._left.append((alert.at_ns, key, incident))


def recall(state: Incidents, alert: v1.Alert) -> None:
    """An alert that was resolved before the restart: its incident may still be joined."""
    if not alert.HasField("fired_at_ns") or alert.mode == _SHADOW:
        return
    incident = alert.incident or alert.episode
    for key in _mark(state, alert, incident, _keys(alert, state.grouping)):
        presence = state.places[key][incident]
        presence.left_ns = max(presence.left_ns, alert.at_ns)
        state._left.append((alert.at_ns, key, incident))


def forget(state: Incidents, at_ns: int) -> None:
    """Drop what ended so long ago that nothing can join it any more."""
    before_ns = at_ns - state.grouping.linger_ns - _HOUR_NS
    while state._left and state._left[0][0] < before_ns:
        _, key, incident = state._left.popleft()
        here = state.places.get(key, {})
        if (presence := here.get(incident)) and not presence.open and presence.left_ns < before_ns:
            del here[incident]
            if not here:
                del state.places[key]


def _found(state: Incidents, alert: v1.Alert, places: list[Place]) -> str | None:
    """Of the nearest place that has one, the incident that began first."""
    at_ns, linger_ns = alert.fired_at_ns, state.grouping.linger_ns
    for key, within_ns in places:
        here = [
            incident
            for incident, presence in state.places.get(key, {}).items()
            if (presence.open or at_ns - presence.left_ns <= linger_ns)
            and (within_ns is None or abs(at_ns - presence.fired_ns) <= within_ns)
        ]
        if here:
            return min(here, key=_began)
    return None


def _began(incident: str) -> tuple[int, str]:
    started = incident.rpartition("-")[2]
    return int(started) if started.isascii() and started.isdigit() else 0, incident


def _places(alert: v1.Alert, family: Family, grouping: Grouping) -> Iterator[Place]:
    """From the nearest to the farthest. Of a partition its board too: what befalls the one befalls the other."""
    cluster, where = alert.cluster, alert.evidence
    for entity in (alert.entity, *([f"device/{where['parent']}"] if "parent" in where else [])):
        yield Place(("entity", cluster, entity), grouping.device_ns)
        yield Place(("entity", cluster, entity, family.name), None)
    owner = alert.owner.workload or alert.owner.service or alert.owner.pod
    if family.reach == "workload" and owner:
        yield Place(("owner", cluster, alert.owner.namespace, owner, family.name), grouping.window_ns)
    elif family.reach != "device" and alert.node:
        yield Place(("node", cluster, alert.node, family.name), grouping.window_ns)
    if family.reach == "rack" and "rack" in where:
        yield Place(("rack", cluster, where["rack"], family.name), grouping.window_ns)


def _everywhere(state: Incidents, alert: v1.Alert, family: Family) -> list[Place]:
    """The whole cluster, where the same rule fires on many nodes at once. What programs do is their owners' matter, however many."""
    if not alert.node or family.reach == "workload":
        return []
    others = 0
    for node, fired_ns in reversed(state.nodes.get((alert.cluster, alert.rule), OrderedDict()).items()):
        others += node != alert.node and abs(alert.fired_at_ns - fired_ns) <= state.grouping.window_ns
        if others >= NODES - 1:
            return [Place(("rule", alert.cluster, alert.rule), state.grouping.window_ns)]
    return []


def _keys(alert: v1.Alert, grouping: Grouping) -> list[Key]:
    return [place.key for place in _places(alert, family_of(alert.rule, alert.metric), grouping)]


def _enter(state: Incidents, alert: v1.Alert, incident: str, keys: list[Key]) -> None:
    """A shadow leads nobody: an alert that people are told of must not hide behind one that they are not."""
    if alert.mode == _SHADOW:
        return
    marked = _mark(state, alert, incident, keys)
    for key in marked:
        state.places[key][incident].open += 1
    state.members[alert.fingerprint] = incident, marked


def _mark(state: Incidents, alert: v1.Alert, incident: str, keys: list[Key]) -> tuple[Key, ...]:
    """Note where and when the alert fired: the keys, and that of its rule."""
    marked = (*keys, ("rule", alert.cluster, alert.rule))
    for key in marked:
        presence = state.places.setdefault(key, {}).setdefault(incident, _Presence())
        presence.fired_ns = max(presence.fired_ns, alert.fired_at_ns)
    if alert.node:
        nodes = state.nodes.setdefault((alert.cluster, alert.rule), OrderedDict())
        nodes[alert.node] = max(alert.fired_at_ns, nodes.pop(alert.node, 0))
        while next(iter(nodes.values())) < alert.fired_at_ns - state.grouping.window_ns - _HOUR_NS:
            nodes.popitem(last=False)
    return marked
