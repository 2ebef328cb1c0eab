"""Turns what a plugin read into messages: numbers the batches, and decides per device between a thin and a full sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from collectors.contract import NodeReading, Reading
from collectors.events import content_id
from schemas import topics
from schemas.catalogue import FAST, SLOW
from schemas.codec import encode
from schemas.flow import Out, ReadingEvent
from schemas.identity import INVENTORY_ONLY, NodeRef, complete_info, device_key, node_key, place_key, vendor_of
from schemas.telemetry import v1

_SLOW_NAME: Final = {metric.number: metric.name for metric in SLOW}
_SLOW_NAMES: Final = tuple(_SLOW_NAME.values())
_NOT_SLOW: Final = (*(metric.name for metric in FAST), "uid", "index", "full", "absences", "info", "vendor_metrics", "links")
_LEFT_OUT: Final = ("uid", "index", "cluster", "node", "simulated", "firmware_version", "board_part", *sorted(INVENTORY_ONLY))
"""Of the DeviceInfo in a sample: what schemas.identity.complete_info puts back, and what only inventory carries (288 B of 8 devices)."""

_Absences = dict[int, int]
"""Reason by field number."""


class _Known:
    """What was last said of one device."""

    __slots__ = ("fast_absent", "identity", "links", "resend", "slow", "slow_absent")

    def __init__(self) -> None:
        self.links: tuple[v1.InterconnectLink, ...] = ()
        self.slow = v1.DeviceSample()
        self.slow_absent: _Absences = {}
        self.fast_absent: _Absences = {}
        self.identity = b""
        self.resend = True


class _Node:
    """One node of one source: its next sequence, and its devices."""

    __slots__ = ("devices", "sequence")

    def __init__(self) -> None:
        self.sequence = 0
        self.devices: dict[str, _Known] = {}


class Publisher:
    """Pure but for what it remembers; give it each Reading once, in order.

    `sequence` is gapless per (cluster, node) within `agent_epoch` (ns UTC, the start of this publisher). A sample is full at the first
    sight of its device, when a slow field, the set of absences or the identity changed, and in every `full_every`-th batch; a full
    sample repeats the slow fields last read. Thin ones leave slow fields, links, identity and unchanged absences out. Links are sent with
    whatever makes a sample full; their counters alone do not.
    """

    def __init__(
        self,
        source: str,
        node: NodeRef,
        *,
        agent_epoch: int,
        interval_ns: int,
        full_every: int = 60,
        boot_id: str = "",
        node_info: v1.NodeInfo | None = None,
    ) -> None:
        self._source, self._node, self._epoch = source, node, agent_epoch
        self._interval_ns, self._full_every, self._boot_id = interval_ns, full_every, boot_id
        self._node_info = node_info
        self._nodes: dict[NodeRef, _Node] = {}

    def outs(self, reading: Reading, sent_at_ns: int) -> list[Out]:
        """Inventory first, then batches, then events. Raises schemas.flow.Rejected where a message would be too large."""
        inventory: list[Out] = []
        batches = [self._batch(part, sent_at_ns, inventory) for part in reading.samples]
        return [*inventory, *batches, *(event_out(event) for event in reading.events)]

    def resend(self) -> None:
        """Something was not delivered: send every device whole again, so that no consumer waits a minute for its slow fields."""
        for node in self._nodes.values():
            for known in node.devices.values():
                known.resend = True

    def _batch(self, part: NodeReading, sent_at_ns: int, inventory: list[Out]) -> Out:
        ref = part.node or self._node
        node = self._nodes.get(ref)
        if node is None:
            node = self._nodes[ref] = _Node()
            if ref == self._node and self._node_info is not None:
                record = v1.InventoryRecord(observed_at_ns=part.taken_at_ns, node=self._node_info)
                inventory.append(event_out(record))
        batch = v1.SampleBatch(
            cluster=ref.cluster,
            node=ref.node,
            source=self._source,
            agent_epoch=self._epoch,
            sequence=node.sequence,
            taken_at_ns=part.taken_at_ns,
            sent_at_ns=sent_at_ns,
            boot_id=part.boot_id or self._boot_id,
            driver_epoch=part.driver_epoch,
            interval_ns=self._interval_ns,
            simulated=part.simulated,
            processes=part.processes or (),
            processes_taken=part.processes is not None,
            processes_unknown=part.processes_unknown,
        )
        every = node.sequence % self._full_every == 0
        node.sequence += 1
        full: list[v1.DeviceSample] = []
        for sample in part.samples:
            known = node.devices.get(sample.uid)
            if known is None:
                known = node.devices[sample.uid] = _Known()
            out = batch.devices.add()
            out.CopyFrom(sample)
            slow = _learn_absences_and_slow(known, sample)
            new_identity = _learn_identity(known, sample, part.driver_version)
            if every or known.resend:
                _fill(out, known)
                full.append(out)
                if new_identity:
                    batch.driver_version = part.driver_version
                    record = v1.InventoryRecord(observed_at_ns=part.taken_at_ns, device=complete_info(batch, out))
                    inventory.append(event_out(record))
            else:
                _thin(out, slow=slow)
            known.resend = False
        if len(node.devices) > len(part.samples):
            listed = {sample.uid for sample in part.samples}
            node.devices = {uid: known for uid, known in node.devices.items() if uid in listed}
        if full:
            batch.driver_version = part.driver_version
            for out in full:
                _shorten(out, part.driver_version)
        return encode(topics.SAMPLES, ref.key, batch)


def _learn_absences_and_slow(known: _Known, sample: v1.DeviceSample) -> bool:
    """Remember; sets `known.resend` on a change. True where the sample has any slow field."""
    fast_absent: _Absences = {}
    slow_absent: _Absences = {}
    for absence in sample.absences:
        for number in absence.field_number:
            (slow_absent if number in _SLOW_NAME else fast_absent)[number] = absence.reason
    if fast_absent != known.fast_absent:
        known.fast_absent = fast_absent
        known.resend = True
    has = sample.HasField
    for name in _SLOW_NAMES:  # a loop, not any(): half the time, on the hottest path of a big fleet
        if has(name):
            break
    else:
        if not slow_absent:
            return False
    _learn_slow(known, sample, slow_absent)
    if sample.links:
        links = tuple(sample.links)
        if [_state(link) for link in links] != [_state(link) for link in known.links]:
            known.resend = True
        known.links = links
    return True


def _state(link: v1.InterconnectLink) -> tuple[int, bool, str]:
    return link.index, link.active, link.remote_bdf


def _learn_identity(known: _Known, sample: v1.DeviceSample, driver_version: str) -> bool:
    """True where the identity is new; `known.resend` is then set."""
    if not sample.HasField("info"):
        return False
    identity = sample.info.SerializeToString(deterministic=True) + f"\0{sample.index}\0{driver_version}".encode()
    if identity == known.identity:
        return False
    known.identity = identity
    known.resend = True
    return True


def _learn_slow(known: _Known, sample: v1.DeviceSample, slow_absent: _Absences) -> None:
    slow = v1.DeviceSample()
    slow.CopyFrom(known.slow)
    new = v1.DeviceSample()
    new.CopyFrom(sample)
    for name in _NOT_SLOW:
        new.ClearField(name)
    slow.MergeFrom(new)
    for number in slow_absent:
        slow.ClearField(_SLOW_NAME[number])
    absent = {n: reason for n, reason in known.slow_absent.items() if not new.HasField(_SLOW_NAME[n])} | slow_absent
    if slow != known.slow or absent != known.slow_absent:
        known.slow, known.slow_absent, known.resend = slow, absent, True


def _fill(out: v1.DeviceSample, known: _Known) -> None:
    out.full = True
    out.MergeFrom(known.slow)
    del out.links[:]
    out.links.extend(known.links)
    del out.absences[:]
    by_reason: dict[int, list[int]] = {}
    for number, reason in (known.fast_absent | known.slow_absent).items():
        by_reason.setdefault(reason, []).append(number)
    for reason, numbers in sorted(by_reason.items()):
        out.absences.add(reason=reason, field_number=sorted(numbers))


def _thin(out: v1.DeviceSample, *, slow: bool) -> None:
    out.ClearField("info")
    out.ClearField("absences")
    out.ClearField("links")
    for name in _SLOW_NAMES if slow else ():
        out.ClearField(name)


def _shorten(out: v1.DeviceSample, driver_version: str) -> None:
    if not out.HasField("info"):
        return
    info = out.info
    for name in _LEFT_OUT:
        info.ClearField(name)
    if info.vendor == vendor_of(out.uid):
        info.ClearField("vendor")
    if info.driver_version == driver_version:
        info.ClearField("driver_version")


def _by_node(event: ReadingEvent) -> bytes:
    assert not isinstance(event, v1.InventoryRecord)
    return node_key(event.cluster, event.node)


def _by_place(event: ReadingEvent) -> bytes:
    assert isinstance(event, v1.ContextEvent)
    return place_key(NodeRef(event.cluster, event.node), event.entity)


def _by_what(event: ReadingEvent) -> bytes:
    assert isinstance(event, v1.InventoryRecord)
    if event.HasField("device"):
        return device_key(event.device.cluster, event.device.node, event.device.uid)
    return node_key(event.node.cluster, event.node.node)


_ROUTE: Final[dict[type[ReadingEvent], tuple[str, Callable[[ReadingEvent], bytes]]]] = {
    v1.DeviceEvent: (topics.DEVICE_EVENTS, _by_node),
    v1.ContextEvent: (topics.CONTEXT_EVENTS, _by_place),
    v1.AllocationSnapshot: (topics.ALLOCATIONS, _by_node),
    v1.AllocationChange: (topics.ALLOCATION_CHANGES, _by_node),
    v1.InferenceWindow: (topics.INFERENCE, _by_node),
    v1.InventoryRecord: (topics.INVENTORY, _by_what),
}
EVENT_TYPES: Final = tuple(_ROUTE)
"""The messages of ReadingEvent in a fixed order."""


def event_out(event: ReadingEvent) -> Out:
    """The event on its topic under its key; a DeviceEvent without an id gets one."""
    topic, key = _ROUTE[type(event)]
    if isinstance(event, v1.DeviceEvent) and not event.id:
        event.id = content_id(event)
    return encode(topic, key(event), event)
