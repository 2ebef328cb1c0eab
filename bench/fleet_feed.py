"""Gives a simulated fleet to the detect role as its topics would, every ten seconds of simulated time.

All that is said goes through the role's own records (inventory, usage, events, context, and a batch of samples per node); only the
values of the samples take a short cut: they are handed over as the columns that reading the batch's bytes would make, which a test
compares. A day of 64 cards is 550,000 device samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from collectors.simulated.events import context_events, device_events
from collectors.simulated.layout import VENDOR
from collectors.simulated.workload import open_lives, workload
from schemas import topics
from schemas.builder import SampleBuilder
from schemas.catalogue import BY_NAME
from schemas.codec import encode
from schemas.flow import Record
from schemas.identity import NodeRef, device_key, node_key
from schemas.telemetry import v1
from streams.operators.detect.columns import Columns, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.protobuf.message import Message

    from collectors.simulated.fleet import Fleet, View
    from collectors.simulated.layout import Place
    from streams.operators.detect import fleet as watched
    from streams.operators.detect.columns import Taken

STEP_SECONDS: Final = 10
"""Of simulated time between two reads of a card; the shipped agent reads every second, and detectors count in points of ten."""
SLOW_STEPS: Final = 6
"""Slow fields are read every so many."""
AHEAD_SECONDS: Final = 600
"""What is planned is looked up for so long at once."""
USAGE_STEPS: Final = 6
"""Usage is said again every so many, and when it changes."""
BOOT: Final = "boot"


def record(topic: str, key: bytes, message: Message, at_ns: int) -> Record:
    """The message as the bus gives it, appended at `at_ns` to the one partition there is."""
    out = encode(topic, key, message)
    return Record(topic, 0, 0, key, out.value, out.headers, at_ns)


@dataclass(slots=True)
class Feed:
    """Records of a fleet, step by step. With `messages` the batches carry their samples, and nothing takes the short cut."""

    fleet: Fleet
    messages: bool = False
    view: View | None = None
    _step: int = 0
    _ahead: int = 0
    _context: dict[int, list[v1.ContextEvent]] = field(default_factory=dict)
    _changes: dict[NodeRef, set[int]] = field(default_factory=dict)

    def inventory(self) -> Iterator[Record]:
        """Every node and device, before anything else."""
        at_ns = self.fleet.started_at_ns
        for node in self.fleet.layout.nodes:
            said = v1.InventoryRecord(observed_at_ns=at_ns, node=node.info("bench"))
            yield record(topics.INVENTORY, node_key(node.cluster, node.name), said, at_ns)
        for device in self.fleet.layout.devices:
            info = v1.DeviceInfo()
            info.CopyFrom(device.info)
            info.uid, info.index, info.cluster, info.node, info.simulated = (
                device.uid,
                device.index,
                device.node.cluster,
                device.node.name,
                True,
            )
            key = device_key(device.node.cluster, device.node.name, device.uid)
            yield record(topics.INVENTORY, key, v1.InventoryRecord(observed_at_ns=at_ns, device=info), at_ns)

    def step(self) -> list[Record]:
        """What is said in the next ten seconds; empty while the read itself hangs."""
        before, self._step = self._step, self._step + STEP_SECONDS
        at_ns = self.fleet.time_ns(self._step)
        self.fleet.advance(at_ns)
        if any(a.fault.scope == "source" and a.fault.start_seconds <= self._step < a.fault.end_seconds for a in self.fleet.faults):
            return []
        if self._step > self._ahead:
            self._look_ahead(before)
        said = [record(topics.CONTEXT_EVENTS, e.entity.encode(), e, at_ns) for e in self._context.pop(self._step, ())]
        said += [record(topics.DEVICE_EVENTS, node_key(e.cluster, e.node), e, at_ns) for e in device_events(self.fleet, before, self._step)]
        self.view = self.fleet.view()
        number = self._step // STEP_SECONDS
        for node in self.fleet.layout.nodes:
            said += self._usage(node, number, at_ns)
            said.append(record(topics.SAMPLES, node_key(node.cluster, node.name), self._batch(node, number, at_ns), at_ns))
        return said

    def _look_ahead(self, before: int) -> None:
        """Context, and the steps in which somebody begins or ends to use a card, for the next stretch at once."""
        self._ahead = before + AHEAD_SECONDS
        for event in context_events(self.fleet, before, self._ahead):
            self._context.setdefault(self._said_at(self.fleet.step_at(event.at_ns)), []).append(event)
        self._changes = {}
        for service in self.fleet.services:
            for life in self.fleet.timeline.between(service.number, before, self._ahead):
                for at in (life.opened, life.closed):
                    if at is not None:
                        self._changes.setdefault(NodeRef(service.cluster, service.node), set()).add(self._said_at(at))

    def _said_at(self, step: int) -> int:
        """The step in which what happened then is said."""
        return -(-step // STEP_SECONDS) * STEP_SECONDS

    @property
    def at_ns(self) -> int:
        return self.fleet.time_ns(self._step)

    @property
    def slow(self) -> bool:
        """Whether slow fields are read in this step."""
        return (self._step // STEP_SECONDS) % SLOW_STEPS == 1

    def _usage(self, node: Place, number: int, at_ns: int) -> Iterator[Record]:
        if number % USAGE_STEPS and self._step not in self._changes.get(node.ref, ()):
            return
        held = open_lives(self.fleet, node.ref, self._step)
        said = v1.AttributedBatch(cluster=node.cluster, node=node.name, source=VENDOR, taken_at_ns=at_ns, simulated=True)
        for service, _ in held:
            holder = workload(self.fleet.services[service], self.fleet.timeline.life(service, self._step))
            for card in self.fleet.services[service].cards:
                said.rows.add(uid=self.fleet.layout.devices[card].uid, workload=holder, share_ratio=1.0)
        yield record(topics.USAGE, node_key(node.cluster, node.name), said, at_ns)

    def _batch(self, node: Place, number: int, at_ns: int) -> v1.SampleBatch:
        made = v1.SampleBatch(
            cluster=node.cluster,
            node=node.name,
            source=VENDOR,
            agent_epoch=1,
            sequence=number,
            taken_at_ns=at_ns,
            sent_at_ns=at_ns,
            boot_id=BOOT,
            driver_epoch=1,
            simulated=True,
        )
        if self.messages:
            self._fill(made, node)
        return made

    def _fill(self, made: v1.SampleBatch, node: Place) -> None:
        assert self.view is not None
        for device in self.fleet.layout.devices:
            if device.node is not node or self.view.lost[device.number]:
                continue
            builder = SampleBuilder(device.uid, device.index).info(device.info)
            for name, column in self.view.columns.items():
                if self.slow or BY_NAME[name].cadence == "fast":
                    if self.view.hung[device.number]:
                        builder.absent(name, "error")
                    else:
                        builder.set(name, column[device.number].item())
            made.devices.append(builder.build())


class ViewReader(Reader):
    """Stands in for the detect role's reader of batches: the columns come from the feed's view of the cards."""

    def __init__(self, feed: Feed, metrics: Sequence[str]) -> None:
        super().__init__(metrics)
        self._feed = feed
        self._metrics = tuple(metrics)
        self._single = np.flatnonzero([BY_NAME[m].wire == "float" for m in metrics])
        known = [m for m in self._metrics if m in feed.fleet.view().columns]
        self._at = [self._metrics.index(m) for m in known]
        self._names = known
        self._slow = np.array([BY_NAME[m].cadence == "slow" for m in self._metrics], np.bool_)
        self._epoch = hash((BOOT, 1))
        self._devices: list[watched.Device] = []

    def read(self, taken: Sequence[Taken], fleet: watched.Fleet) -> Columns:
        """As `columns.Reader.read`, for batches of one step."""
        view, layout = self._feed.view, self._feed.fleet.layout
        assert view is not None
        if not self._devices:
            self._devices = [self._found(fleet, number) for number in range(len(layout.devices))]
        nodes = {t.batch.node for t in taken}
        there = ~view.lost
        if len(nodes) < len(layout.nodes):
            there &= np.array([d.node.name in nodes for d in layout.devices], np.bool_)
        values = np.full((len(layout.devices), len(self._metrics)), np.nan)
        for at, name in zip(self._at, self._names, strict=True):
            values[:, at] = view.columns[name]
        # On the wire a gauge has 24 bits.
        values[:, self._single] = values[:, self._single].astype(np.float32)
        absent = None
        if view.hung.any():
            absent = np.zeros(values.shape, np.bool_)
            absent[np.ix_(view.hung, np.isin(np.arange(len(self._metrics)), self._at))] = True
            values[view.hung] = np.nan
        if not self._feed.slow:
            values[:, self._slow] = np.nan
            if absent is not None:
                absent[:, self._slow] = False
        places = np.flatnonzero(there)
        devices = [self._devices[n] for n in places]
        return Columns(
            devices=devices,
            rows=np.fromiter((d.row for d in devices), np.intp, len(devices)),
            at_ns=np.full(len(devices), self._feed.at_ns, np.int64),
            epoch=np.full(len(devices), self._epoch, np.int64),
            values=values[places],
            absent=None if absent is None else absent[places],
        )

    def _found(self, fleet: watched.Fleet, number: int) -> watched.Device:
        said = self._feed.fleet.layout.devices[number]
        device = fleet.device(fleet.node(said.node.cluster, said.node.name), said.uid)
        device.index, device.model = said.index, said.info.model
        return device
