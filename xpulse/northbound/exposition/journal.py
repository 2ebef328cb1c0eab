"""Remembers what the latest state does not show: the last Xid, Xids of five minutes, growth of counters, and all events of each node."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from schemas.dcgm_names import RATED, XID_WINDOW_NS, Trail
from schemas.identity import NodeRef
from schemas.recent import Recent
from schemas.telemetry import v1
from schemas.values import name_of

if TYPE_CHECKING:
    from collectors.contract import Reading

_FORGET_NS: Final = 10 * 60 * 1_000_000_000
"""A device of which nothing is heard for so long is forgotten, its Xids included."""

_IDS: Final = 4096
"""Events remembered by id, so that a later version of one counts only what it adds."""

_RATE_LIMIT_NS: Final = 5 * 60 * 1_000_000_000
"""Two readings further apart say nothing of the rate now."""

_MANY: Final = 1024
"""Devices known at once before the forgotten are looked for without anybody asking; no node has so many."""


class _Device:
    __slots__ = ("heard_ns", "rates", "read", "source", "xids")

    def __init__(self) -> None:
        self.heard_ns = 0
        self.source = ""
        self.read: dict[str, tuple[int, int]] = {}
        """By counter: when it was read, and what it said."""
        self.rates: dict[str, float] = {}
        self.xids: _Xids | None = None


class _Xids:
    __slots__ = ("last", "last_at_ns", "seen", "text")

    def __init__(self) -> None:
        self.last, self.last_at_ns, self.text = 0, 0, ""
        self.seen: deque[tuple[int, int, int]] = deque()
        """When, which, how often."""

    def add(self, event: v1.DeviceEvent, count: int) -> None:
        at_ns = event.last_at_ns or event.at_ns
        if at_ns >= self.last_at_ns:
            self.last, self.last_at_ns, self.text = event.code, at_ns, event.mnemonic
        if not count:
            return
        if self.seen and self.seen[-1][1] == event.code and at_ns - self.seen[-1][0] < 1_000_000_000:
            self.seen[-1] = (self.seen[-1][0], event.code, self.seen[-1][2] + count)
        else:
            self.seen.append((at_ns, event.code, count))
        while self.seen and self.seen[0][0] < at_ns - XID_WINDOW_NS:
            self.seen.popleft()

    def within(self, now_ns: int) -> dict[int, int]:
        found: Counter[int] = Counter()
        for at_ns, code, count in self.seen:
            if now_ns - at_ns <= XID_WINDOW_NS:
                found[code] += count
        return dict(found)


class Journal:
    """An observer of the agent on `node`; safe to use from several threads."""

    def __init__(self, node: NodeRef) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._devices: dict[tuple[NodeRef, str], _Device] = {}
        self._events: Counter[tuple[str, str, str]] = Counter()
        self._counted: Recent[str, int] = Recent(_IDS)

    def observe(self, source: str, reading: Reading) -> None:
        """Take one read of `source`."""
        with self._lock:
            for part in reading.samples:
                for sample in part.samples:
                    self._learn(source, (part.node or self._node, sample.uid), sample, part.taken_at_ns)
                if len(self._devices) > _MANY:  # nobody asks, and instances come and go
                    self._forget(part.taken_at_ns)

    def happened(self, event: v1.DeviceEvent) -> None:
        """Count an event; a later version of a known one (same id) counts only by how much its count grew."""
        kind = name_of(v1.DeviceEventKind.DESCRIPTOR, event.kind)
        count = max(1, event.count)
        with self._lock:
            known = self._counted.get(event.id, 0) if event.id else 0
            if event.id:
                self._counted[event.id] = max(known, count)
            grown = max(0, count - known)
            self._events[event.cluster, event.node, kind] += grown
            if kind == "xid" and event.uid and event.HasField("code"):
                device = self._devices.setdefault((NodeRef(event.cluster, event.node), event.uid), _Device())
                device.heard_ns = max(device.heard_ns, event.last_at_ns or event.at_ns)
                device.xids = device.xids or _Xids()
                device.xids.add(event, grown)

    def trails(self, now_ns: int) -> dict[tuple[NodeRef, str], Trail]:
        """What is known of each device at `now_ns`, ns UTC."""
        with self._lock:
            self._forget(now_ns)
            return {key: _trail(device, now_ns) for key, device in self._devices.items()}

    def _forget(self, now_ns: int) -> None:
        for key in [key for key, device in self._devices.items() if now_ns - device.heard_ns > _FORGET_NS]:
            del self._devices[key]

    def events(self) -> Mapping[tuple[str, str, str], int]:
        """How often each kind of event happened since the start, by cluster, node and kind; those of devices that are gone included."""
        with self._lock:
            return dict(self._events)

    def _learn(self, source: str, key: tuple[NodeRef, str], sample: v1.DeviceSample, at_ns: int) -> None:
        device = self._devices.setdefault(key, _Device())
        if device.source not in ("", source) and at_ns - device.heard_ns < _RATE_LIMIT_NS:
            return  # another source's counters may start elsewhere
        if device.source != source:
            device.source, device.read, device.rates = source, {}, {}
        device.heard_ns = max(device.heard_ns, at_ns)
        for name in RATED:
            if not sample.HasField(name):
                continue
            value = getattr(sample, name)
            before = device.read.get(name)
            if before is not None and at_ns <= before[0]:
                continue
            device.read[name] = (at_ns, value)
            if before is not None and value >= before[1] and at_ns - before[0] <= _RATE_LIMIT_NS:
                device.rates[name] = (value - before[1]) * 1e9 / (at_ns - before[0])
            else:  # the first reading, or a counter that began anew
                device.rates.pop(name, None)


def _trail(device: _Device, now_ns: int) -> Trail:
    rates = {name: rate for name, rate in device.rates.items() if now_ns - device.read[name][0] <= _RATE_LIMIT_NS}
    xids = device.xids
    if xids is None:
        return Trail(rates=rates)
    return Trail(xids.last, xids.text, xids.last_at_ns, xids.within(now_ns), rates)
