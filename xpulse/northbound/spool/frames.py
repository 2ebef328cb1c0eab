"""One message as bytes on disk, and messages out of bytes that may end anywhere or be damaged anywhere.

A frame is a marker, the length of its body, a CRC-32 over length and body, and the body. The marker is there for the reader: after
damage it looks for the next one, so that a bad byte costs one message and not the rest of the file.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, NamedTuple

from schemas.flow import Headers, Out

MARKER: Final = b"\xf5XP1"
"""No UTF-8 text holds its first byte."""

MOST_BODY_BYTES: Final = 8 * 1024 * 1024
"""More than any message of ours (schemas.topics.MAX_VALUE_BYTES) with its key and headers: a larger length is damage."""

_HEAD: Final = struct.Struct("<4sII")
_BODY: Final = struct.Struct("<QqBHIH")
_HEADER: Final = struct.Struct("<HI")
_HAS_VALUE: Final = 1


class Entry(NamedTuple):
    """A message and when it was written to the spool, ns UTC."""

    out: Out
    at_ns: int


class Frame(NamedTuple):
    """A whole message; the next frame begins at `end`."""

    entry: Entry
    end: int


class Gap(NamedTuple):
    """Bytes up to `end` that are no frame."""

    end: int


def encode(out: Out, at_ns: int) -> bytes:
    """The frame of a message written at `at_ns` (ns UTC). Raises ValueError for one that no frame can hold."""
    topic = out.topic.encode()
    value = out.value
    flags = 0 if value is None else _HAS_VALUE
    timestamp_ns = -1 if out.timestamp_ns is None else out.timestamp_ns
    parts = [b"", topic, out.key]
    try:
        parts[0] = _BODY.pack(at_ns, timestamp_ns, flags, len(topic), len(out.key), len(out.headers))
        for name, held in out.headers:
            raw = name.encode()
            parts += (_HEADER.pack(len(raw), len(held)), raw, held)
    except struct.error as error:
        raise ValueError(f"{out.topic}: a message that the spool cannot hold: {error}") from None
    if value is not None:
        parts.append(value)
    body = b"".join(parts)
    if len(body) > MOST_BODY_BYTES:
        raise ValueError(f"{out.topic}: a message of {len(body)} bytes, {MOST_BODY_BYTES} is the most that the spool can hold")
    return _HEAD.pack(MARKER, len(body), _check(body)) + body


def read(data: bytes, at: int, *, whole: bool) -> Frame | Gap | None:
    """What lies at `at` < len(data). `whole` says that `data` reaches to the end of the file; else None asks for more of it."""
    found = _frame(data, at)
    if found is not None:
        return found
    if not whole:
        return None
    start = at
    while (start := data.find(MARKER, start + 1)) >= 0:
        if _frame(data, start) is not None:
            return Gap(start)
    return Gap(len(data))


def count(data: bytes) -> tuple[int, int]:
    """How many frames a whole file's bytes hold, and when the first was written (0: there is none). Ten times as fast as reading them."""
    at, found, first_at_ns = 0, 0, 0
    while at < len(data):
        body = _body(data, at)
        if body is None:
            step = read(data, at, whole=True)
            assert step is not None
            at = step.end
            continue
        if not found:
            first_at_ns = int.from_bytes(body[:8], "little")
        found += 1
        at += _HEAD.size + len(body)
    return found, first_at_ns


def _body(data: bytes, at: int) -> bytes | None:
    """The body of the frame at `at`; None where there is no whole one."""
    if len(data) - at < _HEAD.size:
        return None
    marker, length, check = _HEAD.unpack_from(data, at)
    start, end = at + _HEAD.size, at + _HEAD.size + length
    if marker != MARKER or length > MOST_BODY_BYTES or end > len(data):
        return None
    body = data[start:end]
    return body if _check(body) == check else None


def _frame(data: bytes, at: int) -> Frame | None:
    body = _body(data, at)
    if body is None:
        return None
    end = at + _HEAD.size + len(body)
    try:
        return Frame(_entry(body), end)
    except (struct.error, ValueError):  # written by a release that laid it out otherwise
        return None


def _check(body: bytes) -> int:
    return zlib.crc32(body, len(body))


def _entry(body: bytes) -> Entry:
    at_ns, timestamp_ns, flags, topic_size, key_size, headers = _BODY.unpack_from(body)
    at = _BODY.size
    topic = body[at : at + topic_size].decode()
    at += topic_size
    key = body[at : at + key_size]
    at += key_size
    found: list[tuple[str, bytes]] = []
    for _ in range(headers):
        name_size, held_size = _HEADER.unpack_from(body, at)
        at += _HEADER.size
        name, held = body[at : at + name_size].decode(), body[at + name_size : at + name_size + held_size]
        at += name_size + held_size
        found.append((name, held))
    if at > len(body):
        raise ValueError("the body is shorter than it says")
    value = body[at:] if flags & _HAS_VALUE else None
    kept: Headers = tuple(found)
    return Entry(Out(topic, key, value, kept, None if timestamp_ns < 0 else timestamp_ns), at_ns)
