"""A good message for every topic, numbered so that two are never the same, and the ways in which one goes bad."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from schemas import topics
from schemas.builder import SampleBuilder
from schemas.codec import HEADERS
from schemas.identity import device_entity, finding_key, fingerprint, node_key, partition_of
from schemas.telemetry import v1
from tests.integration.stack import PARTITIONS

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from schemas.flow import Headers

CLUSTER: Final = "c1"
SECOND_NS: Final = 1_000_000_000
RULE: Final = "ecc_uncorrected"
SCHEMA: Final = "schema-version"


@dataclass(frozen=True, slots=True)
class Good:
    """A message that every role accepts. `number` is found again in what is made of it."""

    topic: str
    number: int
    key: bytes
    message: Message

    @property
    def value(self) -> bytes:
        return self.message.SerializeToString()


@dataclass(frozen=True, slots=True)
class Bad:
    """One way to go bad: value and headers from a good message, and how the reason must begin (or what must be in it)."""

    name: str
    spoil: Callable[[Good], tuple[bytes | None, Headers]]
    reason: str


def _with_version(version: bytes) -> Headers:
    return tuple((name, version if name == SCHEMA else value) for name, value in HEADERS)


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field that no release of ours has."""
    tag = number << 3 | 2
    return _varint(tag) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


NOISE: Final = random.Random(1).randbytes(2 * 1024 * 1024)
"""Two megabytes that no compression makes smaller."""

BAD: Final = (
    Bad("malformed bytes", lambda good: (b"\xff" * 12, HEADERS), "malformed "),
    Bad("unknown major", lambda good: (good.value, _with_version(b"2.0")), "schema major 2 was sent, this release understands 1"),
    Bad("empty value", lambda good: (b"", HEADERS), "empty value"),
    Bad("two megabytes", lambda good: (good.value + _field(999, NOISE), HEADERS), "1048576 is the most"),
    Bad("missing header", lambda good: (good.value, ()), "no schema-version header"),
    Bad("unreadable version", lambda good: (good.value, _with_version(b"one")), "is not major.minor"),
    Bad("no identity", lambda good: (_field(999, b"x"), HEADERS), " without "),
)
NULL: Final = Bad("null value", lambda good: (None, HEADERS), "null value on a topic that is not compacted")


def newer_minor(good: Good) -> tuple[bytes, Headers]:
    """The same message from a later release: a higher minor version, and a field that is not known here."""
    return good.value + _field(998, b"from a later release"), _with_version(b"1.7")


def uid(number: int) -> str:
    return f"test:card-{number}"


def _samples(node: str, number: int, at_ns: int) -> Message:
    sample = SampleBuilder(uid(number), number).set("utilization_ratio", 0.5).set("memory_used_bytes", 1 << 30)
    sample.info(v1.DeviceInfo(model="Test", kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR))
    found = sample.build()
    found.full = True
    return v1.SampleBatch(
        cluster=CLUSTER, node=node, source="test", agent_epoch=1, sequence=number, taken_at_ns=at_ns, sent_at_ns=at_ns, devices=[found]
    )


def _usage(node: str, number: int, at_ns: int) -> Message:
    row = v1.Attributed(uid=uid(number), owner_state=v1.OwnerState.OWNER_STATE_IDLE, utilization_ratio=0.5, share_ratio=1)
    return v1.AttributedBatch(
        cluster=CLUSTER, node=node, source="test", agent_epoch=1, sequence=number, taken_at_ns=at_ns, interval_ns=0, rows=[row]
    )


def _device_event(node: str, number: int, at_ns: int) -> Message:
    kind = v1.DeviceEventKind.DEVICE_EVENT_KIND_XID
    return v1.DeviceEvent(
        cluster=CLUSTER, node=node, uid=uid(number), source="test", kind=kind, at_ns=at_ns, code=79, text="fell off", id=str(number)
    )


def _context_event(node: str, number: int, at_ns: int) -> Message:
    kind = v1.ContextEventKind.CONTEXT_EVENT_KIND_DEPLOY
    return v1.ContextEvent(entity=device_entity(uid(number)), cluster=CLUSTER, node=node, kind=kind, at_ns=at_ns, id=str(number))


def _allocations(node: str, number: int, at_ns: int) -> Message:
    held = _held(number, at_ns)
    return v1.AllocationSnapshot(cluster=CLUSTER, node=node, source="test", taken_at_ns=at_ns, open=[held])


def _allocation_change(node: str, number: int, at_ns: int) -> Message:
    kind = v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_OPENED
    return v1.AllocationChange(cluster=CLUSTER, node=node, kind=kind, at_ns=at_ns, allocation=_held(number, at_ns))


def _held(number: int, at_ns: int) -> v1.Allocation:
    who = v1.Workload(namespace="prod", pod=f"chat-{number}", workload="chat")
    return v1.Allocation(id=f"a{number}", device_uid=uid(number), started_at_ns=at_ns, workload=who)


def _inference(node: str, number: int, at_ns: int) -> Message:
    who = v1.Workload(namespace="prod", pod=f"chat-{number}", workload="chat", service="chat")
    return v1.InferenceWindow(
        cluster=CLUSTER, node=node, workload=who, started_at_ns=at_ns - 10 * SECOND_NS, ended_at_ns=at_ns, requests=number
    )


def _finding(node: str, number: int, at_ns: int) -> v1.Finding:
    return v1.Finding(
        rule=RULE,
        cluster=CLUSTER,
        node=node,
        entity=device_entity(uid(number)),
        kind=v1.FindingKind.FINDING_KIND_THRESHOLD,
        active=True,
        severity=v1.Severity.SEVERITY_CRITICAL,
        observed_at_ns=at_ns,
        since_ns=at_ns,
        valid_until_ns=at_ns + 3600 * SECOND_NS,
        mode=v1.AlertMode.ALERT_MODE_NOTIFY,
        summary=f"card {number} is broken",
    )


def _alert(node: str, number: int, at_ns: int) -> v1.Alert:
    entity = device_entity(uid(number))
    mark = fingerprint("by_hand", CLUSTER, entity)
    return v1.Alert(
        fingerprint=mark,
        episode=f"{mark}-{at_ns}",
        status=v1.AlertStatus.ALERT_STATUS_FIRING,
        rule="by_hand",
        cluster=CLUSTER,
        node=node,
        entity=entity,
        severity=v1.Severity.SEVERITY_CRITICAL,
        started_at_ns=at_ns,
        fired_at_ns=at_ns,
        at_ns=at_ns,
        mode=v1.AlertMode.ALERT_MODE_NOTIFY,
        summary=f"card {number} by hand",
    )


def _forecast(node: str, number: int, at_ns: int) -> Message:
    return v1.Forecast(
        cluster=CLUSTER,
        node=node,
        entity=device_entity(uid(number)),
        uid=uid(number),
        metric="memory_used_bytes",
        unit="By",
        made_at_ns=at_ns,
        history_until_ns=at_ns,
        step_ns=SECOND_NS,
        p50=[1.0, 2.0],
        valid_until_ns=at_ns + 60 * SECOND_NS,
        model="test",
    )


def _peer_stats(node: str, number: int, at_ns: int) -> Message:
    return v1.PeerStats(
        cluster=CLUSTER,
        node=node,
        model="Test",
        taken_at_ns=at_ns,
        interval_ns=10 * SECOND_NS,
        metric=["power_watts"],
        devices=[v1.PeerDevice(uid=uid(number), mean=[300.0], samples=10)],
    )


def _alert_state(node: str, number: int, at_ns: int) -> Message:
    return v1.AlertState(alert=_alert(node, number, at_ns), last_finding=_finding(node, number, at_ns))


def _inventory(node: str, number: int, at_ns: int) -> Message:
    info = v1.DeviceInfo(uid=uid(number), model="Test", kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR, cluster=CLUSTER, node=node)
    return v1.InventoryRecord(observed_at_ns=at_ns, device=info)


_MAKE: Final[dict[str, Callable[[str, int, int], Message]]] = {
    topics.SAMPLES: _samples,
    topics.USAGE: _usage,
    topics.DEVICE_EVENTS: _device_event,
    topics.CONTEXT_EVENTS: _context_event,
    topics.ALLOCATIONS: _allocations,
    topics.ALLOCATION_CHANGES: _allocation_change,
    topics.INFERENCE: _inference,
    topics.FINDINGS: _finding,
    topics.ALERTS: _alert,
    topics.FORECASTS: _forecast,
    topics.PEER_STATS: _peer_stats,
    topics.ALERT_STATE: _alert_state,
    topics.INVENTORY: _inventory,
}


_SPREAD: Final = {topics.SAMPLES: 0, topics.DEVICE_EVENTS: 0, topics.ALLOCATIONS: 1, topics.USAGE: 3, topics.INFERENCE: 3}
"""Partition of the nodes of a topic (others: 2). The embedded bus keeps 5 MiB of a partition, and each group's dead letter of a large
message is half of one: they must not all lie together."""


def node_of(topic: str) -> str:
    """The node that the messages of a topic are about."""
    names = (f"node-{topic.removeprefix('xpulse.')}-{i}" for i in itertools.count())
    return next(name for name in names if partition_of(node_key(CLUSTER, name), PARTITIONS) == _SPREAD.get(topic, 2))


def good(topic: str, number: int, at_ns: int) -> Good:
    """Message `number` of a topic, about card `number` of a node that only this topic speaks of; `at_ns` is its time."""
    node = node_of(topic)
    message = _MAKE[topic](node, number, at_ns)
    match topics.topic(topic).key:
        case "cluster/node":
            key = node_key(CLUSTER, node)
        case "rule+entity":
            key = finding_key(RULE, device_entity(uid(number)))
        case "fingerprint":
            key = fingerprint("by_hand", CLUSTER, device_entity(uid(number))).encode()
        case _:
            key = device_entity(uid(number)).encode()
    return Good(topic, number, key, message)
