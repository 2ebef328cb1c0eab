"""Whether somebody stepped in between a breach forecast and its end: a deploy, a restart, a maintenance, a workload that left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from schemas.identity import node_entity, service_entity

if TYPE_CHECKING:
    from forecasting.scoring.breaches import Episode
    from schemas.store import Event, Interval, Store

KINDS: Final = frozenset({"deploy", "restart", "maintenance", "configuration", "driver_reloaded"})
"""Kinds of device and context events that change what a series does."""

_DEVICE: Final = "device/"


class Interventions:
    """Asks the store about one episode at a time: few breach forecasts come to nothing. Raises ConnectionError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def stepped_in(self, episode: Episode, until_ns: int) -> bool:
        start_ns, end_ns = episode.made_at_ns, until_ns + 1
        entity, cluster = episode.who.entity, episode.who.cluster
        held = self._held(entity, cluster, start_ns, end_ns)
        if any(one.ended_at_ns is not None and start_ns <= one.ended_at_ns < end_ns for one in held):
            return True
        about = {entity, node_entity(cluster, episode.node)} | {
            service_entity(cluster, one.namespace, one.workload) for one in held if one.workload
        }
        return any(_is_one(event, cluster, about) for event in self._store.events(start_ns=start_ns, end_ns=end_ns))

    def _held(self, entity: str, cluster: str, start_ns: int, end_ns: int) -> list[Interval]:
        if not entity.startswith(_DEVICE):
            return []
        where = {"uid": entity.removeprefix(_DEVICE), "cluster": cluster}
        return self._store.intervals(start_ns=start_ns, end_ns=end_ns, where=where)


def _is_one(event: Event, cluster: str, about: set[str]) -> bool:
    tags = dict(event.tags)
    return event.kind in KINDS and tags.get("cluster", cluster) == cluster and tags.get("entity") in about
