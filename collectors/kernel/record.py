"""Reads one record of the kernel log, as /dev/kmsg or as journalctl's JSON gives it; whatever the bytes are, nothing raises."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

MOST_BYTES: Final = 8192
"""The longest record that /dev/kmsg gives (PRINTK_MESSAGE_MAX is 2048, CONSOLE_EXT_LOG_MAX was 8192)."""

KERNEL: Final = 0
"""The facility of what the kernel itself logs; user space that writes into /dev/kmsg gets another."""

_HEAD: Final = re.compile(rb"([0-9]{1,10}),([0-9]{1,20}),([0-9]{1,20}),[^;]*;")
_ESCAPED: Final = re.compile(rb"\\x([0-9a-fA-F]{2})")


class Record(NamedTuple):
    """One record. `monotonic_us` counts from the boot; `text` may have several lines; `sequence` is -1 in a journal."""

    sequence: int
    monotonic_us: int
    facility: int
    level: int
    text: str


def of_kmsg(data: bytes) -> Record | None:
    """From `priority,sequence,microseconds,flags;text`, then lines ` KEY=value`, which are left out. None where it is no record."""
    match = _HEAD.match(data)
    if match is None:
        return None
    priority, sequence, microseconds = map(int, match.groups())
    text, _, _ = data[match.end() : MOST_BYTES].partition(b"\n")
    if b"\\" in text:
        text = _ESCAPED.sub(lambda m: bytes([int(m[1], 16)]), text)
    return Record(sequence, microseconds, priority >> 3, priority & 7, text.decode("utf-8", "backslashreplace"))


def of_journal(line: bytes) -> tuple[Record, str] | None:
    """The record and its cursor. None where the line is no JSON object, or has no message or time (a message too long is null)."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict):
        return None
    text, at = _text(entry.get("MESSAGE")), _number(entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry.get("__MONOTONIC_TIMESTAMP"))
    cursor = entry.get("__CURSOR")
    if text is None or at is None or not isinstance(cursor, str):
        return None
    facility, level = _number(entry.get("SYSLOG_FACILITY")), _number(entry.get("PRIORITY"))
    return Record(-1, at, KERNEL if facility is None else facility, 6 if level is None else level, text), cursor


def _text(message: Any) -> str | None:
    """journalctl gives a text, a list of bytes where it is no UTF-8, or a list of such where the field came more than once."""
    if isinstance(message, str):
        return message
    if isinstance(message, list) and message:
        if all(type(byte) is int and 0 <= byte < 256 for byte in message):
            return bytes(message).decode("utf-8", "backslashreplace")
        return _text(message[0])
    return None


def _number(text: Any) -> int | None:
    if isinstance(text, list) and text:
        text = text[0]
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 20 else None
