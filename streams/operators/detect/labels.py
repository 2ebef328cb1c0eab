"""What is known beside the samples: who works on a device, and what was done to it; it labels findings and never makes one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from schemas.identity import device_entity, node_entity
from schemas.recent import Recent
from schemas.telemetry import v1
from schemas.values import name_of
from streams.operators.detect.findings import About

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.operators.detect.fleet import Device, Fleet


PAST_NS: Final = 120 * 1_000_000_000
"""Whoever worked on a device this long ago, or at most twice that, is still asked for what happened to it: during a restart nobody does."""

MOST_ENTITIES: Final = 20_000
"""Entities whose context events are kept. One of them, with four events, takes some 3 KiB."""


def _contexts() -> Recent[tuple[str, str], deque[v1.ContextEvent]]:
    return Recent(MOST_ENTITIES)


@dataclass(slots=True)
class Labels:
    """Newest usage of each (cluster, node, source) and what it was before, the newest `keep` context events of each (cluster, entity)
    heard of lately, and where the inventory says that nodes and devices belong."""

    keep: int
    usage: dict[tuple[str, str, str], v1.AttributedBatch] = field(default_factory=dict)
    context: Recent[tuple[str, str], deque[v1.ContextEvent]] = field(default_factory=_contexts)
    racks: dict[tuple[str, str], str] = field(default_factory=dict)
    """By (cluster, node)."""
    parents: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """By (cluster, node): the board of each partition, by uid."""
    _past: dict[tuple[str, str, str], tuple[v1.AttributedBatch, v1.AttributedBatch]] = field(default_factory=dict)
    _sources: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def used(self, batch: v1.AttributedBatch) -> None:
        """Take a usage batch in; an older one than the newest is left out."""
        key = (batch.cluster, batch.node, batch.source)
        known = self.usage.get(key)
        if known is None:
            self._sources.setdefault(key[:2], set()).add(batch.source)
        elif known.taken_at_ns > batch.taken_at_ns:
            return
        self.usage[key] = batch
        past = self._past.get(key)
        if past is None or batch.taken_at_ns - past[1].taken_at_ns >= PAST_NS:
            self._past[key] = (past[1] if past else batch, batch)

    def happened(self, event: v1.ContextEvent) -> None:
        """Take a context event in; one that is known by its id is left out."""
        place = (event.cluster, event.entity)
        events = self.context.get(place, deque(maxlen=self.keep))
        self.context[place] = events
        if not (event.id and any(event.id == known.id for known in events)):
            events.append(event)

    def owner(self, cluster: str, node: str, uid: str) -> v1.Workload | None:
        """Who works on the device by the newest usage; of several the one with the largest share. None: nobody, or not known."""
        best: v1.Attributed | None = None
        for source in self._sources.get((cluster, node), ()):
            for row in self.usage[cluster, node, source].rows:
                if row.uid == uid and row.HasField("workload") and (best is None or row.share_ratio > best.share_ratio):
                    best = row
        return None if best is None else best.workload

    def lately(self, cluster: str, node: str, uid: str) -> Iterator[v1.Workload]:
        """Who works on the device, or did so until just now; the same one several times."""
        for source in self._sources.get((cluster, node), ()):
            key = (cluster, node, source)
            for batch in (self.usage[key], *self._past[key]):
                yield from (row.workload for row in batch.rows if row.uid == uid and row.HasField("workload"))

    def listed(self, said: v1.NodeInfo | v1.DeviceInfo) -> None:
        """Take in where a node or device belongs."""
        place = (said.cluster, said.node)
        if isinstance(said, v1.NodeInfo):
            if rack := said.labels.get("rack"):
                self.racks[place] = rack
            else:
                self.racks.pop(place, None)
        elif said.parent_uid:
            self.parents.setdefault(place, {})[said.uid] = said.parent_uid
        else:
            self.parents.get(place, {}).pop(said.uid, None)

    def placed(self, finding: v1.Finding) -> None:
        """Add the rack of the finding's node and the board of its device to its evidence: what one fault can befall at once."""
        place = (finding.cluster, finding.node)
        if rack := self.racks.get(place):
            finding.evidence["rack"] = rack
        if parent := self.parents.get(place, {}).get(finding.entity.removeprefix("device/")):
            finding.evidence["parent"] = parent

    def about(self, entity: str, cluster: str, node: str, *, simulated: bool, uid: str = "", device: Device | None = None) -> About:
        """Words and evidence for a finding about the entity."""
        words: dict[str, str] = {}
        evidence: dict[str, str] = {}
        if uid:
            words["uid"] = uid
            if (owner := self.owner(cluster, node, uid)) is not None:
                words["owner"] = evidence["owner"] = _said(owner)
        if device is not None:
            if device.index is not None:
                words["index"] = str(device.index)
            if device.model:
                words["model"] = device.model
        places = dict.fromkeys((entity, node_entity(cluster, node)))
        events = sorted((e for place in places for e in self.context.get((cluster, place), ())), key=lambda e: e.at_ns)
        if events:
            evidence["context"] = "; ".join(_told(e) for e in events[-self.keep :])
        return About(entity, cluster, node, simulated, words=words, evidence=evidence)

    def about_device(self, device: Device) -> About:
        node = device.node
        return self.about(device_entity(device.uid), node.cluster, node.name, simulated=node.simulated, uid=device.uid, device=device)

    def about_event(self, event: v1.DeviceEvent, entity: str, fleet: Fleet) -> About:
        device = fleet.find(event.cluster, event.node, event.uid)
        return self.about(entity, event.cluster, event.node, simulated=event.simulated, uid=event.uid, device=device)

    def about_forecast(self, forecast: v1.Forecast, fleet: Fleet) -> About:
        device = fleet.find(forecast.cluster, forecast.node, forecast.uid)
        return self.about(forecast.entity, forecast.cluster, forecast.node, simulated=forecast.simulated, uid=forecast.uid, device=device)

    def forget_older(self, than_ns: int) -> None:
        """Drop the usage of nodes and sources that was taken before."""
        for key in [key for key, batch in self.usage.items() if batch.taken_at_ns < than_ns]:
            del self.usage[key]
            self._past.pop(key, None)
            self._sources[key[:2]].discard(key[2])
            if not self._sources[key[:2]]:
                del self._sources[key[:2]]

    def forget(self, cluster: str, node: str) -> None:
        """Drop the usage and the place of a node; context events are few and stay."""
        self.racks.pop((cluster, node), None)
        self.parents.pop((cluster, node), None)
        for source in self._sources.pop((cluster, node), set()):
            del self.usage[cluster, node, source]
            self._past.pop((cluster, node, source), None)


def _said(owner: v1.Workload) -> str:
    name = owner.service or owner.workload or owner.pod or owner.container or "unnamed"
    return f"{owner.namespace}/{name}" if owner.namespace else name


def _told(event: v1.ContextEvent) -> str:
    kind = name_of(v1.ContextEventKind.DESCRIPTOR, event.kind)
    return f"{kind} of {event.entity} at {event.at_ns}: {event.text}"
