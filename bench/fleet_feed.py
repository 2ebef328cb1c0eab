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
    from numpy.typing import NDArray

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
    _view: View | None = None
    _step: int = 0
    _ahead: int = 0
    _context: dict[int, list[v1.ContextEvent]] = field(default_factory=dict)
    _usages: dict[Place, tuple[tuple[tuple[int, int], ...], v1.AttributedBatch]] = field(default_factory=dict)
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
        said = [record(topics.CONTEXT_EVENTS, node_key(e.cluster, e.node), e, at_ns) for e in self._context.pop(self._step, ())]
        said += [record(topics.DEVICE_EVENTS, node_key(e.cluster, e.node), e, at_ns) for e in device_events(self.fleet, before, self._step)]
        self._view = self.fleet.view()
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
    def cluster(self) -> str:
        """A feed is of one cluster."""
        return self.fleet.layout.nodes[0].cluster

    @property
    def seen(self) -> View:
        """What the cards said last."""
        if self._view is None:
            raise ValueError("nothing was said yet: step() comes first")
        return self._view

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
        known = self._usages.get(node)
        if known is None or known[0] != held:
            known = self._usages[node] = (held, self._attributed(node, held))
        known[1].taken_at_ns = at_ns
        yield record(topics.USAGE, node_key(node.cluster, node.name), known[1], at_ns)

    def _attributed(self, node: Place, held: tuple[tuple[int, int], ...]) -> v1.AttributedBatch:
        said = v1.AttributedBatch(cluster=node.cluster, node=node.name, source=VENDOR, simulated=True)
        for service, _ in held:
            holder = workload(self.fleet.services[service], self.fleet.timeline.life(service, self._step))
            for card in self.fleet.services[service].cards:
                said.rows.add(uid=self.fleet.layout.devices[card].uid, workload=holder, share_ratio=1.0)
        return said

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
        view = self.seen
        for device in self.fleet.layout.devices:
            if device.node is not node or view.lost[device.number]:
                continue
            builder = SampleBuilder(device.uid, device.index).info(device.info)
            for name, column in view.columns.items():
                if self.slow or BY_NAME[name].cadence == "fast":
                    if view.hung[device.number]:
                        builder.absent(name, "error")
                    else:
                        builder.set(name, column[device.number].item())
            made.devices.append(builder.build())


class ViewReader(Reader):
    """Stands in for the detect role's reader of batches: the columns come from the feeds' views of their cards."""

    def __init__(self, feeds: Sequence[Feed], metrics: Sequence[str]) -> None:
        super().__init__(metrics)
        self._feeds = {feed.cluster: feed for feed in feeds}
        self._metrics = tuple(metrics)
        self._known = [(at, name) for at, name in enumerate(metrics) if name in feeds[0].fleet.view().columns]
        self._able = np.isin(np.arange(len(metrics)), [at for at, _ in self._known])
        self._slow = np.array([BY_NAME[name].cadence == "slow" for name in metrics], np.bool_)
        # On the wire a gauge has 24 bits.
        self._single = np.flatnonzero([BY_NAME[name].wire == "float" for name in metrics])
        self._epoch = hash((BOOT, 1))
        self._devices: dict[str, list[watched.Device]] = {}

    def read(self, taken: Sequence[Taken], fleet: watched.Fleet) -> Columns:
        """As `columns.Reader.read`, for batches of one step of any of the feeds."""
        said: dict[str, set[str]] = {}
        for batch, _ in taken:
            said.setdefault(batch.cluster, set()).add(batch.node)
        devices: list[watched.Device] = []
        values, absent = [np.empty((0, len(self._metrics)))], [np.empty((0, len(self._metrics)), np.bool_)]
        at_ns = [batch.taken_at_ns for batch, _ in taken[:1]]
        for cluster, nodes in said.items():
            feed = self._feeds[cluster]
            places = np.flatnonzero(self._there(feed, nodes))
            known = self._devices.get(cluster) or self._devices.setdefault(cluster, _found(feed, fleet))
            devices += [known[place] for place in places]
            here, gone = self._cells(feed)
            values.append(here[places])
            absent.append(gone[places])
        gone = np.concatenate(absent)
        return Columns(
            devices=devices,
            rows=np.fromiter((d.row for d in devices), np.intp, len(devices)),
            at_ns=np.full(len(devices), at_ns[0] if at_ns else 0, np.int64),
            epoch=np.full(len(devices), self._epoch, np.int64),
            values=np.concatenate(values),
            absent=gone if gone.any() else None,
        )

    def _there(self, feed: Feed, nodes: set[str]) -> NDArray[np.bool_]:
        """Devices that are in one of the batches."""
        there = ~feed.seen.lost
        if len(nodes) < len(feed.fleet.layout.nodes):
            there &= np.array([d.node.name in nodes for d in feed.fleet.layout.devices], np.bool_)
        return there

    def _cells(self, feed: Feed) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Values of all devices of a feed, and which are said to be absent."""
        view = feed.seen
        values = np.full((len(view.lost), len(self._metrics)), np.nan)
        for at, name in self._known:
            values[:, at] = view.columns[name]
        values[:, self._single] = values[:, self._single].astype(np.float32)
        absent = view.hung[:, None] & self._able
        values[view.hung] = np.nan
        if not feed.slow:
            values[:, self._slow] = np.nan
            absent[:, self._slow] = False
        return values, absent


def _found(feed: Feed, fleet: watched.Fleet) -> list[watched.Device]:
    """The devices of a feed as the role knows them, with what a full sample says of them."""
    found = []
    for said in feed.fleet.layout.devices:
        device = fleet.device(fleet.node(said.node.cluster, said.node.name), said.uid)
        device.index, device.model = said.index, said.info.model
        found.append(device)
    return found
