"""Keeps what the agent last heard of each device, for whoever asks from outside: stale readings and vanished devices are gone at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from schemas.catalogue import BY_NAME
from schemas.device_state import DeviceState, EventKey, FleetState, NodeState
from schemas.hold import Held
from schemas.identity import NodeRef
from schemas.recent import Recent
from schemas.telemetry import v1
from schemas.values import Absent, Reason, Value, name_of

if TYPE_CHECKING:
    from collectors.contract import NodeReading, Reading

_TICKS: Final = 2.5
"""Ticks without a word after which a reading is stale where the catalogue's max_age is shorter than that (a slow agent)."""

_KINDS: Final = 256
"""Kinds and codes of events counted per device: NVIDIA has some 200 Xids."""

_PLACES: Final = 65_536
"""Devices and nodes whose events are counted: MIG instances get a new name each time a card is cut, for as long as the agent runs."""

_IDS: Final = 4096
"""Events remembered by id, so that a later version of one counts only what it adds."""


class _Device:
    __slots__ = ("epoch", "held", "index", "info", "links", "simulated", "since_ns", "taken_at_ns", "vendor")

    def __init__(self) -> None:
        self.held = Held()
        self.info = v1.DeviceInfo()
        self.index = 0
        self.links: tuple[v1.InterconnectLink, ...] = ()
        self.vendor: dict[str, float] = {}
        self.epoch: tuple[str, int] | None = None
        self.since_ns = self.taken_at_ns = 0
        self.simulated = False


class Latest:
    """Safe to use from several threads. `observe` and `happened` take what the agent hears, `state` gives what is true at `now_ns`."""

    def __init__(self, node: NodeRef, *, interval_ns: int, slow_interval_ns: int, labels: Mapping[str, str] | None = None) -> None:
        self._node, self._labels = node, dict(labels or {})
        self._limit = {"fast": round(_TICKS * interval_ns), "slow": round(_TICKS * slow_interval_ns)}
        self._lock = threading.Lock()
        self._devices: dict[tuple[str, NodeRef], dict[str, _Device]] = {}
        self._events: Recent[tuple[NodeRef, str], Counter[EventKey]] = Recent(_PLACES)
        self._counted: Recent[str, int] = Recent(_IDS)

    def observe(self, source: str, reading: Reading) -> None:
        """Everything one read of `source` gave; a device that is no longer listed is gone."""
        with self._lock:
            for part in reading.samples:
                self._take(source, part)

    def happened(self, event: v1.DeviceEvent) -> None:
        """Count an event; a later version of a known one (same id) counts only by how much its count grew."""
        key = EventKey(name_of(v1.DeviceEventKind.DESCRIPTOR, event.kind), event.code if event.HasField("code") else None)
        count = max(1, event.count)
        with self._lock:
            known = self._counted.get(event.id, 0) if event.id else 0
            if event.id:
                self._counted[event.id] = max(known, count)
            place = (NodeRef(event.cluster, event.node), event.uid)
            counts = self._events[place] = self._events.get(place, Counter())
            if key in counts or len(counts) < _KINDS:
                counts[key] += max(0, count - known)

    def state(self, now_ns: int) -> FleetState:
        """What is true at `now_ns` (the node's wall clock)."""
        with self._lock:
            devices = [
                self._state(source, node, uid, device, now_ns)
                for (source, node), known in self._devices.items()
                for uid, device in known.items()
                if now_ns - device.taken_at_ns <= max(self._limit["fast"], BY_NAME["power_watts"].max_age_ns)
            ]
            of_nodes = {node: counts for (node, uid), counts in self._events.items() if not uid}
            nodes = [NodeState(n, self._labels if n == self._node else {}, dict(of_nodes.get(n, {}))) for n in self._nodes(of_nodes)]
        return FleetState(now_ns, tuple(sorted(devices, key=lambda d: (d.node, d.index, d.uid))), tuple(nodes))

    def _nodes(self, more: Mapping[NodeRef, object]) -> list[NodeRef]:
        return sorted({self._node, *(node for _, node in self._devices), *more})

    def _take(self, source: str, part: NodeReading) -> None:
        place = (source, part.node or self._node)
        known = self._devices.get(place, {})
        self._devices[place] = {sample.uid: self._learn(known.get(sample.uid), sample, part) for sample in part.samples}

    def _learn(self, device: _Device | None, sample: v1.DeviceSample, part: NodeReading) -> _Device:
        epoch = (part.boot_id, part.driver_epoch)
        if device is None or device.epoch != epoch:
            fresh = _Device()
            fresh.epoch, fresh.since_ns = epoch, part.taken_at_ns
            if device is not None:
                fresh.info = device.info
            device = fresh
        device.held.update(sample, part.taken_at_ns)
        if sample.HasField("info"):
            device.info = v1.DeviceInfo()
            device.info.CopyFrom(sample.info)
            device.info.driver_version = device.info.driver_version or part.driver_version
        if sample.links:
            device.links = tuple(sample.links)
        device.vendor = dict(sample.vendor_metrics)
        device.index, device.taken_at_ns, device.simulated = sample.index, part.taken_at_ns, part.simulated
        return device

    def _state(self, source: str, node: NodeRef, uid: str, device: _Device, now_ns: int) -> DeviceState:
        values: dict[str, Value] = {}
        absences: dict[str, Reason] = {}
        slack = {cadence: max(0, limit - floor) for (cadence, limit), floor in zip(self._limit.items(), _FLOORS, strict=True)}
        for name, reading in device.held.items(now_ns):
            if isinstance(reading, Absent) and reading.reason == "stale":  # a slow agent's reading is not stale before its next tick
                reading = device.held.get(name, now_ns - slack[BY_NAME[name].cadence]) or reading
            if isinstance(reading, Absent):
                absences[name] = reading.reason
            else:
                values[name] = reading
        return DeviceState(
            node,
            source,
            uid,
            device.index,
            device.info,
            device.taken_at_ns,
            device.since_ns,
            values,
            absences,
            device.links,
            device.vendor,
            dict(self._events.get((node, uid), {})),
            device.simulated,
        )


_FLOORS: Final = tuple(min(m.max_age_ns for m in BY_NAME.values() if m.cadence == cadence) for cadence in ("fast", "slow"))
"""Shortest max_age of each cadence, ns."""
