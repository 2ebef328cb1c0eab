"""Dead letters: what a record of xpulse.dlq looks like, and how a repaired one goes back to where it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from schemas.flow import Headers, Out, Record, Rejected
from schemas.topics import DLQ

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT_BYTES: Final = 512 * 1024
"""How much of a value is kept (ARCHITECTURE §5); the whole of every message of ours fits."""

_KEPT_HEADER_BYTES: Final = 64 * 1024  # a foreign message's headers must not make its dead letter unsendable
_KEPT_VERSION_BYTES: Final = 64
_MOST_DIGITS: Final = 10  # Python refuses to read a number of thousands of digits
ORIGINAL: Final = "original-"
REPLAYED: Final = "xpulse-replay"
ATTEMPT: Final = "xpulse-attempt"


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. `size_bytes` None means that the original had a null value; `source_partition` −1 that it was never on the bus."""

    partition: int
    offset: int
    at_ns: int
    group: str
    topic: str
    source_partition: int
    source_offset: int
    reason: str
    schema_version: str
    key: bytes
    value: bytes
    size_bytes: int | None
    sha256: str
    attempt: int
    headers: Headers

    @property
    def truncated(self) -> bool:
        return self.size_bytes is not None and self.size_bytes > len(self.value)


def letter_of_record(record: Record, group: str, reason: str) -> Out:
    """The message for xpulse.dlq of a record that will never be accepted."""
    return _letter(record.topic, record.key or b"", record.value, record.headers, group, reason, record.partition, record.offset)


def letter_of_out(out: Out, group: str, reason: str) -> Out:
    """The message for xpulse.dlq of an output that no broker would take."""
    return _letter(out.topic, out.key, out.value, out.headers, group, reason, -1, -1)


def _letter(topic: str, key: bytes, value: bytes | None, original: Headers, group: str, reason: str, partition: int, offset: int) -> Out:
    found = dict(original)
    attempt = found.get(ATTEMPT, b"0")
    headers: Headers = (
        ("group", group.encode()),
        ("topic", topic.encode()),
        ("partition", str(partition).encode()),
        ("offset", str(offset).encode()),
        ("reason", reason.encode()[:4096]),
        ("schema-version", found.get("schema-version", b"")[:_KEPT_VERSION_BYTES]),
        ("sha256", hashlib.sha256(value or b"").hexdigest().encode()),
        ("size", b"null" if value is None else str(len(value)).encode()),
        ("attempt", str(int(attempt) + 1 if attempt.isdigit() and len(attempt) < _MOST_DIGITS else 1).encode()),
    )
    room = _KEPT_HEADER_BYTES
    for name, content in original:
        room -= len(name) + len(content)
        if room >= 0:
            headers += ((ORIGINAL + name, content),)
    return Out(DLQ, key, (value or b"")[:KEPT_BYTES], headers)


def read_letter(record: Record) -> Letter:
    """The dead letter in a record of xpulse.dlq. Raises Rejected where it is none of ours."""
    headers = dict(record.headers)
    try:
        size = headers["size"]
        return Letter(
            partition=record.partition,
            offset=record.offset,
            at_ns=record.timestamp_ns,
            group=_text(headers["group"]),
            topic=_text(headers["topic"]),
            source_partition=int(headers["partition"]),
            source_offset=int(headers["offset"]),
            reason=_text(headers["reason"]),
            schema_version=_text(headers["schema-version"]),
            key=record.key or b"",
            value=record.value or b"",
            size_bytes=None if size == b"null" else int(size),
            sha256=_text(headers["sha256"]),
            attempt=int(headers["attempt"]),
            headers=tuple((name.removeprefix(ORIGINAL), value) for name, value in record.headers if name.startswith(ORIGINAL)),
        )
    except KeyError as missing:
        raise Rejected(f"xpulse.dlq {record.partition}/{record.offset} is no dead letter of ours: no header {missing}") from None
    except ValueError as error:
        raise Rejected(f"xpulse.dlq {record.partition}/{record.offset} has an unreadable header: {error}") from None


def replayed(letter: Letter, *, value: bytes | None = None, set_headers: Mapping[str, str] | None = None) -> Out:
    """The message that sends a letter back: original topic, key and headers, `value` and `set_headers` in place of the broken ones.

    Raises Rejected where the letter holds only part of its value and no repaired one is given, where the original value was null,
    or where it was an output of ours and not a record.
    """
    where = f"xpulse.dlq {letter.partition}/{letter.offset}"
    if value is None and letter.truncated:
        raise Rejected(
            f"{where} holds {len(letter.value)} of {letter.size_bytes} bytes; give the repaired value (original sha256 {letter.sha256})"
        )
    if value is None and letter.size_bytes is None:
        raise Rejected(f"{where} had a null value; give a repaired value")
    kept = {name: content for name, content in letter.headers if name not in (REPLAYED, ATTEMPT)}
    kept |= {name: content.encode() for name, content in (set_headers or {}).items()}
    kept |= {REPLAYED: f"{letter.partition}/{letter.offset}".encode(), ATTEMPT: str(letter.attempt).encode()}
    return Out(letter.topic, letter.key, letter.value if value is None else value, tuple(kept.items()))


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
