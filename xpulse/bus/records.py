"""From librdkafka's messages to our records: unprefixed topic names, nanoseconds, header pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from schemas.codec import HEADERS
from schemas.flow import Headers, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

_Content = str | bytes | None
_NS_PER_MS: Final = 1_000_000
_OURS: Final = list(HEADERS)


def to_record(message: Message, topic: str) -> Record:
    """The record in a message without error. `topic` is its unprefixed name; a timestamp the broker does not have is 0."""
    headers = message.headers()
    _, timestamp_ms = message.timestamp()
    return Record(
        topic,
        message.partition() or 0,
        message.offset() or 0,
        message.key(),
        message.value(),
        to_headers(headers) if headers else (),
        timestamp_ms * _NS_PER_MS if timestamp_ms > 0 else 0,
    )


def to_headers(headers: Mapping[str, _Content] | list[tuple[str, _Content]]) -> Headers:
    """librdkafka's headers as pairs; a header without a value has an empty one."""
    if headers == _OURS:
        return HEADERS
    pairs = headers.items() if not isinstance(headers, list) else headers
    return tuple((name, value if isinstance(value, bytes) else b"" if value is None else str(value).encode()) for name, value in pairs)
