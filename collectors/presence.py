"""Notices devices that appear, vanish or come back between two readings of one source; a vanished card is an event, not silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
        self._parents: dict[str, str] = {}
        self._reloaded: set[NodeRef] = set()

    def say_again(self) -> None:
        """What was said of lost devices was declared over, by a maintenance: who is still missing at the next reading is lost anew."""
        for node in self._gone:
            self._expect_again(node)

    def _expect_again(self, node: NodeRef) -> None:
        if node in self._present:
            self._present[node] |= self._gone[node]
            self._gone[node] = set()

    def note(self, event: v1.DeviceEvent) -> None:
        """Take in what the plugin reported itself, so that it is not said twice."""
        node = NodeRef(event.cluster, event.node)
        gone = self._gone.setdefault(node, set())
        if event.kind == _KIND.DEVICE_EVENT_KIND_LOST:
            gone.add(event.uid)
        elif event.kind == _KIND.DEVICE_EVENT_KIND_RETURNED:
            gone.discard(event.uid)
        elif event.kind == _KIND.DEVICE_EVENT_KIND_DRIVER_RELOADED:
            self._reloaded.add(node)
        elif event.kind == _KIND.DEVICE_EVENT_KIND_RECONFIGURED and (present := self._present.get(node)) is not None:
            present |= set(event.details.get("came", "").split())
            present -= set(event.details.get("went", "").split())

    def update(
        self, node: NodeRef, uids: Iterable[str], at_ns: int, *, simulated: bool = False, parents: Mapping[str, str] | None = None
    ) -> list[v1.DeviceEvent]:
        """Events that follow from the devices of a new reading; none for the first reading of a node.

        `parents` names the device that a device is a part of. Parts of one that is there come and go by being cut anew, also while the
        plugin's process was away for it: that is one `reconfigured` event of the parent, nothing lost and nothing added. Parts that go
        or come together with their parent are said by its event: one card that is lost is one loss.
        """
        now = set(uids)
        before = self._present.get(node)
        self._present[node] = set(now)
        self._parents.update(parents or {})
        gone = self._gone.setdefault(node, set())
        events = [] if before is None or before == now else self._changes(node, before, now, gone, at_ns, simulated)
        if node in self._reloaded:  # for the next reading: this one was taken before the reload was said, which ends what was said before
            self._reloaded.discard(node)
            self._expect_again(node)
        return events

    def _changes(self, node: NodeRef, before: set[str], now: set[str], gone: set[str], at_ns: int, simulated: bool) -> list[v1.DeviceEvent]:
        parts = {uid for uid in before ^ now if self._parents.get(uid) in before & now}
        events = [self._cut_anew(node, parent, parts, before, at_ns, simulated) for parent in sorted({self._parents[uid] for uid in parts})]
        along = {uid for uid in before ^ now if self._parents.get(uid) in before ^ now}
        for uid in sorted(before - now - parts):
            if uid not in gone and uid not in along:
                text = f"{uid} is no longer listed by its source"
                events.append(device_event(node, self._source, "lost", at_ns, text, severity="critical", uid=uid, simulated=simulated))
            gone.add(uid)
        for uid in sorted(now - before - parts):
            kind, text = ("returned", f"{uid} is back") if uid in gone else ("added", f"{uid} is new on this node")
            gone.discard(uid)
            if uid in along:
                continue
            events.append(
                device_event(node, self._source, kind, at_ns, text, severity="info", uid=uid, simulated=simulated)  # type: ignore[arg-type]  # the pair's first is one of two literals
            )
        for uid in parts - now:
            del self._parents[uid]
        return events

    def _cut_anew(self, node: NodeRef, parent: str, parts: set[str], before: set[str], at_ns: int, simulated: bool) -> v1.DeviceEvent:
        mine = {uid for uid in parts if self._parents[uid] == parent}
        went, came = sorted(mine & before), sorted(mine - before)
        said = [f"{verb} {', '.join(uids)}" for verb, uids in (("went:", went), ("came:", came)) if uids]
        text = f"{parent} was cut anew; {'; '.join(said)}"
        event = device_event(node, self._source, "reconfigured", at_ns, text, severity="info", uid=parent, simulated=simulated)
        event.details["came"], event.details["went"] = " ".join(came), " ".join(went)
        return event
