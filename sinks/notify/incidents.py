"""What receivers believe is firing in each incident, and so which transitions they are told: one fault is one message, not sixty-four.

The first alert of an incident is told; a later one only where it is more severe than all that receivers believe is firing. That an
alert is over is told of those that were told: of the first one when the whole incident is over, of a more severe one as soon as
nothing as severe is left. So no receiver is left with an alert that never ends, or believes that all is well while it is not.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST: Final = 20_000
"""Incidents that are known at once; of one that made room everything is told again."""


@dataclass(slots=True)
class Incident:
    """`members` counts its alerts so far. `open` and `told` hold the severity of an episode; `ended` are those that were told and are
    over, but not told to be."""

    members: int = 0
    open: dict[str, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    ended: dict[str, v1.Alert] = field(default_factory=dict)


class Notice(NamedTuple):
    """A transition to tell, and its incident as it is by then."""

    alert: v1.Alert
    incident: Incident


@dataclass(slots=True)
class Told:
    """The incidents with an open alert, the oldest first."""

    incidents: OrderedDict[str, Incident] = field(default_factory=OrderedDict)


def knows(state: Told, alert: v1.Alert) -> bool:
    """Whether the alert is known to be open."""
    incident = state.incidents.get(_name(alert))
    return incident is not None and alert.episode in incident.open


def take(state: Told, alert: v1.Alert) -> list[Notice]:
    """What is to be told because of a transition to firing or resolved; nothing where receivers know as much already."""
    if alert.status == v1.AlertStatus.ALERT_STATUS_RESOLVED:
        return list(_over(state, alert))
    incident = state.incidents.setdefault(_name(alert), Incident())
    while len(state.incidents) > MOST:
        state.incidents.popitem(last=False)
    if alert.episode not in incident.open:
        incident.members += 1
    incident.open[alert.episode] = alert.severity
    if alert.severity <= max(incident.told.values(), default=-1):
        return []
    incident.told[alert.episode] = alert.severity
    return [Notice(alert, incident)]


def _over(state: Told, alert: v1.Alert) -> Iterator[Notice]:
    name = _name(alert)
    incident = state.incidents.get(name)
    if incident is None or incident.open.pop(alert.episode, None) is None:
        yield Notice(alert, Incident(members=1))  # it was told before anything that is known here
        return
    if alert.episode in incident.told:
        incident.ended[alert.episode] = alert
    gravest = max(incident.open.values(), default=-1)
    first = next(iter(incident.told))
    for episode in [*incident.ended]:
        if not incident.open or (episode != first and incident.told[episode] > gravest):
            del incident.told[episode]
            yield Notice(incident.ended.pop(episode), incident)
    if not incident.open:
        del state.incidents[name]


def _name(alert: v1.Alert) -> str:
    """An alert of an older release is an incident of its own."""
    return alert.incident or alert.episode
