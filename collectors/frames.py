"""The words a plugin's process says to the agent: length-prefixed frames of protobuf bytes and small JSON, nothing pickled.

A frame is `>I` length of what follows, one byte kind, the body. A Reading is its NodeReadings and events, then one END frame, so that
a process that dies halfway leaves no half reading behind.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from google.protobuf.message import DecodeError

from collectors.contract import NodeReading, Reading
from collectors.publisher import EVENT_TYPES
from schemas.flow import ReadingEvent
from schemas.identity import NodeRef
from schemas.telemetry import v1

MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
"""A longer length is a broken stream, not a reading: 10,000 devices are 4 MiB."""

_HEAD: Final = struct.Struct(">IB")


class Kind(IntEnum):
    ALIVE = 1
    READY = 2
    UNAVAILABLE = 3
    NODE = 4
    EVENT = 5
    END = 6
    FAILED = 7


@dataclass(frozen=True, slots=True)
class Alive:
    """Nothing to say, but not hung."""


@dataclass(frozen=True, slots=True)
class Up:
    """The source answers."""

    devices: int


@dataclass(frozen=True, slots=True)
class Down:
    """The source cannot be read; the process asks again after `retry_s`."""

    reason: str
    retry_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The process gives up. `misconfigured`: starting it again does not help."""

    reason: str
    misconfigured: bool


@dataclass(frozen=True, slots=True)
class Read:
    """One finished read. `skipped` counts ticks that passed while it took too long."""

    reading: Reading
    duration_ns: int
    skipped: int


Word = Alive | Up | Down | Failed | Read


class Broken(Exception):
    """The stream holds no frame where one should be."""


def frame(kind: Kind, body: bytes = b"") -> bytes:
    return _HEAD.pack(len(body) + 1, kind) + body


def _json(kind: Kind, **fields: Any) -> bytes:
    return frame(kind, json.dumps(fields).encode())


def alive() -> bytes:
    return frame(Kind.ALIVE)


def up(devices: int) -> bytes:
    return _json(Kind.READY, devices=devices)


def down(reason: str, retry_s: float) -> bytes:
    return _json(Kind.UNAVAILABLE, reason=reason, retry_s=retry_s)


def failed(reason: str, *, misconfigured: bool = False) -> bytes:
    return _json(Kind.FAILED, reason=reason, misconfigured=misconfigured)


def read(reading: Reading, *, duration_ns: int, skipped: int) -> bytes:
    """All frames of one reading, ready to be written at once."""
    parts = [frame(Kind.NODE, _node_bytes(part)) for part in reading.samples]
    for event in reading.events:
        parts.append(frame(Kind.EVENT, bytes([EVENT_TYPES.index(type(event))]) + event.SerializeToString()))
    rejects = [[metric, reason, count] for (metric, reason), count in reading.rejects.items()]
    parts.append(_json(Kind.END, duration_ns=duration_ns, skipped=skipped, rejects=rejects))
    return b"".join(parts)


def _node_bytes(part: NodeReading) -> bytes:
    batch = v1.SampleBatch(
        taken_at_ns=part.taken_at_ns,
        boot_id=part.boot_id,
        driver_epoch=part.driver_epoch,
        driver_version=part.driver_version,
        simulated=part.simulated,
        devices=part.samples,
        processes=part.processes or (),
        processes_taken=part.processes is not None,
        processes_unknown=part.processes_unknown,
    )
    if part.node is not None:
        batch.cluster, batch.node = part.node
    return batch.SerializeToString()


def _node_reading(body: bytes) -> NodeReading:
    batch = v1.SampleBatch.FromString(body)
    return NodeReading(
        taken_at_ns=batch.taken_at_ns,
        samples=tuple(batch.devices),
        node=NodeRef(batch.cluster, batch.node) if batch.cluster or batch.node else None,
        boot_id=batch.boot_id,
        driver_epoch=batch.driver_epoch,
        driver_version=batch.driver_version,
        simulated=batch.simulated,
        processes=tuple(batch.processes) if batch.processes_taken else None,
        processes_unknown=tuple(batch.processes_unknown),
    )


@dataclass(slots=True)
class Listener:
    """Puts words together from whatever pieces the pipe gives. `feed` raises Broken on nonsense; the process is then not worth hearing."""

    _buffer: bytearray = field(default_factory=bytearray)
    _nodes: list[NodeReading] = field(default_factory=list)
    _events: list[ReadingEvent] = field(default_factory=list)

    def feed(self, data: bytes) -> Iterator[Word]:
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            length, kind = _HEAD.unpack_from(self._buffer)
            if not 1 <= length <= MAX_FRAME_BYTES:
                raise Broken(f"a frame of {length} bytes")
            if len(self._buffer) < 4 + length:
                return
            body = bytes(self._buffer[_HEAD.size : 4 + length])
            del self._buffer[: 4 + length]
            try:
                word = self._word(kind, body)
            except (ValueError, TypeError, LookupError, DecodeError) as error:  # a library that wrote over the process' memory
                raise Broken(f"a frame of kind {kind} that cannot be read: {type(error).__name__}") from None
            if word is not None:
                yield word

    def _word(self, kind: int, body: bytes) -> Word | None:
        match kind:
            case Kind.ALIVE:
                return Alive()
            case Kind.READY:
                return Up(**json.loads(body))
            case Kind.UNAVAILABLE:
                return Down(**json.loads(body))
            case Kind.FAILED:
                return Failed(**json.loads(body))
            case Kind.NODE:
                self._nodes.append(_node_reading(body))
                return None
            case Kind.EVENT:
                self._events.append(EVENT_TYPES[body[0]].FromString(body[1:]))
                return None
            case Kind.END:
                end = json.loads(body)
                rejects = {(metric, reason): count for metric, reason, count in end["rejects"]}
                reading = Reading(tuple(self._nodes), tuple(self._events), rejects)
                self._nodes, self._events = [], []
                return Read(reading, end["duration_ns"], end["skipped"])
            case _:
                raise Broken(f"a frame of kind {kind}")
