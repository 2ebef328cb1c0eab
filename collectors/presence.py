"""Notices devices that appear, vanish or come back between two readings of one source; a vanished card is an event, not silence."""

from __future__ import annotations

from collections.abc import Iterable

from collectors.events import device_event
from schemas.identity import NodeRef
from schemas.telemetry import v1

_KIND = v1.DeviceEventKind


class Presence:
    """Device sets per node. It survives restarts of the plugin's process, so a card that is gone afterwards is still noticed."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._present: dict[NodeRef, set[str]] = {}
        self._gone: dict[NodeRef, set[str]] = {}

    def note(self, event: v1.DeviceEvent) -> None:
        """Take in what the plugin reported itself, so that it is not said twice."""
        gone = self._gone.setdefault(NodeRef(event.cluster, event.node), set())
        if event.kind == _KIND.DEVICE_EVENT_KIND_LOST:
            gone.add(event.uid)
        elif event.kind == _KIND.DEVICE_EVENT_KIND_RETURNED:
            gone.discard(event.uid)

    def update(self, node: NodeRef, uids: Iterable[str], at_ns: int, *, simulated: bool = False) -> list[v1.DeviceEvent]:
        """Events that follow from the devices of a new reading; none for the first reading of a node."""
        now = set(uids)
        before = self._present.get(node)
        self._present[node] = now
        if before is None or before == now:
            return []
        gone = self._gone.setdefault(node, set())
        events = []
        for uid in sorted(before - now):
            if uid not in gone:
                text = f"{uid} is no longer listed by its source"
                events.append(device_event(node, self._source, "lost", at_ns, text, severity="critical", uid=uid, simulated=simulated))
            gone.add(uid)
        for uid in sorted(now - before):
            kind, text = ("returned", f"{uid} is back") if uid in gone else ("added", f"{uid} is new on this node")
            gone.discard(uid)
            events.append(
                device_event(node, self._source, kind, at_ns, text, severity="info", uid=uid, simulated=simulated)  # type: ignore[arg-type]  # the pair's first is one of two literals
            )
        return events
