"""From bytes to messages and back: headers, schema version, and the one place that decides what is malformed."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from schemas.flow import Headers, Out, Record, Rejected
from schemas.telemetry import v1
from schemas.topics import MAX_VALUE_BYTES, TOPICS, topic

if TYPE_CHECKING:
    from collections.abc import Callable

MAJOR: Final = 1
MINOR: Final = 1
CONTENT_TYPE: Final = b"application/x-protobuf"
_LONGEST_VERSION: Final = 16  # Python refuses to read a number of thousands of digits
MOST_TIME_NS: Final = 2**63 - 1
"""The year 2262: where the 63 bits of numpy and of every store end."""

HEADERS: Final[Headers] = (("content-type", CONTENT_TYPE), ("schema-version", f"{MAJOR}.{MINOR}".encode()))


def encode(topic_name: str, key: bytes, message: Message, *, headers: Headers = ()) -> Out:
    """An Out with our headers. Raises Rejected where the message is larger than MAX_VALUE_BYTES."""
    value = message.SerializeToString()
    if len(value) > MAX_VALUE_BYTES:
        raise Rejected(f"{topic_name}: {len(value)} bytes to send, {MAX_VALUE_BYTES} is the most; split it")
    return Out(topic_name, key, value, HEADERS + headers)


def tombstone(topic_name: str, key: bytes) -> Out:
    """A deletion on a compacted topic."""
    if not topic(topic_name).compacted:
        raise ValueError(f"{topic_name} is not compacted: it has no deletions")
    return Out(topic_name, key, None, HEADERS)


def check_version(headers: Headers) -> None:
    """Raise Rejected where the schema-version header is missing, unreadable, or of another major; a newer minor is accepted."""
    if headers == HEADERS:  # those of our own release, which nearly every message has
        return
    version = next((value for name, value in headers if name == "schema-version"), None)
    if version is None:
        raise Rejected("no schema-version header; every producer of ours sets it to major.minor")
    major, _, minor = version.partition(b".")
    if not (major.isdigit() and minor.isdigit() and len(version) <= _LONGEST_VERSION):
        raise Rejected(f"schema-version {version[:32]!r} is not major.minor")
    if int(major) != MAJOR:
        raise Rejected(
            f"schema major {int(major)} was sent, this release understands {MAJOR}; upgrade the consumer (or the producer) first"
        )


def decode(record: Record) -> Message | None:
    """The message in a record; None for a deletion on a compacted topic.

    Raises Rejected with the reason: null or empty value, no or another major version, too large, malformed, or without what
    makes it usable (node, time, entity), or a time that nothing can hold. Unknown fields are skipped.
    """
    row = topic(record.topic)
    if row.message is None:
        raise Rejected(f"{record.topic} carries no protobuf message")
    if record.value is None:
        if row.compacted:
            return None
        raise Rejected("null value on a topic that is not compacted")
    if not record.value:
        raise Rejected("empty value")
    check_version(record.headers)
    if len(record.value) > MAX_VALUE_BYTES:
        raise Rejected(f"{len(record.value)} bytes, {MAX_VALUE_BYTES} is the most")
    message = row.message()
    try:
        message.ParseFromString(record.value)
    except DecodeError as error:
        raise Rejected(f"malformed {row.message.DESCRIPTOR.name}: {error}") from None
    if missing := _MISSING[row.message](message):
        raise Rejected(f"{row.message.DESCRIPTOR.name} without {missing}")
    for name in _TIMES[row.message]:
        if (time_ns := getattr(message, name)) > MOST_TIME_NS:
            raise Rejected(f"{row.message.DESCRIPTOR.name}: {name} {time_ns} is after the year 2262")
    return message


def _first_empty(*names: str) -> Callable[[Message], str]:  # of two names or more: attrgetter gives no tuple for one
    read = attrgetter(*names)

    def missing(message: Message) -> str:
        if all(read(message)):
            return ""
        return next(name for name in names if not getattr(message, name))

    return missing


_place = _first_empty("cluster", "node")


def _inventory(message: Message) -> str:
    assert isinstance(message, v1.InventoryRecord)
    which = message.WhichOneof("record")
    if which is None:
        return "device or node"
    return _place(getattr(message, which)) or ("" if message.observed_at_ns else "observed_at_ns")


_alert = _first_empty("fingerprint", "episode", "status", "at_ns")

_MISSING: Final[dict[type[Message], Callable[[Message], str]]] = {
    v1.SampleBatch: _first_empty("cluster", "node", "source", "agent_epoch", "taken_at_ns"),
    v1.InventoryRecord: _inventory,
    v1.DeviceEvent: _first_empty("cluster", "node", "kind", "at_ns"),
    v1.ContextEvent: _first_empty("entity", "kind", "at_ns"),
    v1.AllocationSnapshot: _first_empty("cluster", "node", "taken_at_ns"),
    v1.AllocationChange: _first_empty("cluster", "node", "kind", "at_ns"),
    v1.InferenceWindow: _first_empty("cluster", "node", "started_at_ns", "ended_at_ns"),
    v1.AttributedBatch: _first_empty("cluster", "node", "source", "taken_at_ns"),
    v1.Finding: _first_empty("rule", "entity", "observed_at_ns"),
    v1.AlertState: lambda m: "alert" if not m.HasField("alert") else _alert(m.alert),  # type: ignore[attr-defined]  # Message is the common base
    v1.Alert: _alert,
    v1.Forecast: _first_empty("entity", "metric", "made_at_ns"),
    v1.PeerStats: _first_empty("cluster", "node", "model", "taken_at_ns"),
}
_TIMES: Final = {
    row.message: tuple(f.name for f in row.message.DESCRIPTOR.fields if f.type == FieldDescriptor.TYPE_FIXED64 and f.name.endswith("_ns"))
    for row in TOPICS
    if row.message is not None
}
