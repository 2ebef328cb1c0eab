"""What is remembered of one node's GPUs between two pages, and what follows from a new one: samples, and events of what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from collectors.contract import NodeReading
from collectors.dcgm import parse
from collectors.dcgm.page import Seen
from collectors.dcgm.xid import News, XidMemory
from collectors.events import device_event
from schemas.builder import SampleBuilder
from schemas.catalogue import CATALOGUE
from schemas.dcgm import table
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import Absent, Reading, Reason

_SPARE: Final = 64
"""Devices remembered beyond those on the page: MIG instances come and go, a GPU may blink."""


@dataclass(slots=True)
class _Device:
    info: v1.DeviceInfo
    once: set[str] = field(default_factory=set)
    xids: XidMemory = field(default_factory=XidMemory)
    silent: frozenset[str] = frozenset()
    energy_joules: float = 0.0


@dataclass(slots=True)
class Understood:
    """What one page gives of one node. `rejects` as in collectors.contract.Reading."""

    reading: NodeReading
    events: list[v1.DeviceEvent]
    rejects: Counter[tuple[str, str]]


@dataclass(slots=True)
class Node:
    """`boot_id` is the agent's own node's, or a constant: of other nodes DCGM does not tell it. The epoch begins anew where an energy
    counter falls, which it does only when the driver is loaded again."""

    ref: NodeRef
    boot_id: str
    _devices: dict[str, _Device] = field(default_factory=dict)
    _listed: tuple[str, ...] = ()
    _epoch: int = 0
    _driver: str = ""

    @property
    def uids(self) -> tuple[str, ...]:
        return self._listed

    def understand(self, devices: Iterable[tuple[Seen, tuple[Seen, ...]]], taken_at_ns: int, *, slow: bool) -> Understood:
        """Samples and events of a page that was taken at `taken_at_ns` (ns UTC); `slow`: the slow fields are due."""
        samples: list[v1.DeviceSample] = []
        events: list[v1.DeviceEvent] = []
        rejects: Counter[tuple[str, str]] = Counter()
        restarted = False
        for seen, parts in devices:
            uid = parse.uid_of(seen, self.ref.node)
            device = self._devices.get(uid)
            if device is None:
                device = self._devices[uid] = _Device(parse.info(seen, self.ref.node))
            else:
                device.info = parse.info(seen, self.ref.node)
            found, extras = parse.readings(seen, parts)
            builder = SampleBuilder(uid, seen.index).info(device.info)
            parse.fill(builder, found, device.once, slow=slow)
            for name, value in extras.items():
                builder.vendor(name, value)
            rejects.update(builder.rejects)
            samples.append(builder.build())
            events += self._xids(uid, device.xids.step(seen.xids), taken_at_ns)
            events += [] if parts else self._profiling(device, found, taken_at_ns)
            energy = found.get("energy_joules")
            if isinstance(energy, int | float):
                restarted = restarted or energy < device.energy_joules
                device.energy_joules = energy
            self._driver = seen.driver or self._driver
        if restarted:
            self._epoch = taken_at_ns
        self._listed = tuple(sample.uid for sample in samples)
        self._forget()
        return Understood(self._reading(samples, taken_at_ns), events, rejects)

    def absent(self, why: Reason, taken_at_ns: int, *, slow: bool) -> NodeReading:
        """Every device of the last page, with nothing known of it now."""
        samples = []
        for uid in self._listed:
            info = self._devices[uid].info
            builder = SampleBuilder(uid, info.index).info(info)
            for metric in CATALOGUE:
                if slow or metric.cadence == "fast":
                    builder.absent(metric.name, why)
            samples.append(builder.build())
        return self._reading(samples, taken_at_ns)

    def _reading(self, samples: list[v1.DeviceSample], taken_at_ns: int) -> NodeReading:
        return NodeReading(
            taken_at_ns, tuple(samples), node=self.ref, boot_id=self.boot_id, driver_epoch=self._epoch, driver_version=self._driver
        )

    def _forget(self) -> None:
        if len(self._devices) > 2 * len(self._listed) + _SPARE:
            self._devices = {uid: self._devices[uid] for uid in self._listed}

    def _xids(self, uid: str, news: Iterable[News], at_ns: int) -> list[v1.DeviceEvent]:
        return [_xid_event(self.ref, uid, one, at_ns) for one in news]

    def _profiling(self, device: _Device, found: Mapping[str, Reading], at_ns: int) -> list[v1.DeviceEvent]:
        """DCGM's profiling can go blank with an Xid and stay so until nv-hostengine starts anew (DCGM#202): said once, never carried on."""
        silent = frozenset(name for name in _profiled() & device.once if isinstance(found.get(name), Absent | None))
        began, ended = silent - device.silent, device.silent - silent
        device.silent = silent
        events = []
        if began:
            text = f"DCGM no longer gives {', '.join(sorted(began))}; if it stays so, restart nv-hostengine (dcgm-exporter)"
            events.append(device_event(self.ref, "dcgm", "vendor_log", at_ns, text, uid=device.info.uid))
        if ended:
            text = f"DCGM gives {', '.join(sorted(ended))} again"
            events.append(device_event(self.ref, "dcgm", "vendor_log", at_ns, text, severity="info", uid=device.info.uid))
        return events


@cache
def _profiled() -> frozenset[str]:
    return frozenset(row.metric for row in table().rows if row.profiling and row.metric.endswith("_ratio"))


def _xid_event(node: NodeRef, uid: str, news: News, at_ns: int) -> v1.DeviceEvent:
    from schemas.xid import catalogue  # a table of 200 rows that most nodes never need

    row = catalogue().row(news.code)
    if news.old:
        text = f"the last Xid that DCGM knows of is {news.code} ({row.mnemonic}); it came before the agent first looked"
        return device_event(node, "dcgm", "vendor_log", at_ns, text, severity="info", uid=uid, code=news.code)
    event = device_event(node, "dcgm", "xid", at_ns, f"{row.says} (told by DCGM)", severity=row.severity, uid=uid, code=news.code)
    event.count = news.times
    event.MergeFrom(
        v1.DeviceEvent(
            mnemonic=row.mnemonic,
            event_class=f"EVENT_CLASS_{row.event_class.upper()}",
            action=f"RECOMMENDED_ACTION_{row.action.upper()}",
            first_at_ns=at_ns,
            last_at_ns=at_ns,
        )
    )
    return event
