"""Marks a batch of samples that is sent late: else its wait on disk would look like a node's clock that is wrong.

Skew is the broker's time of arrival less `sent_at_ns` (ARCHITECTURE §4), so the time of sending is set anew; what was measured when
stays as it is. A serialised message with fields put behind it is the message with those fields set (protobuf: the last one counts), so
nothing is parsed.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

from schemas.flow import Out
from schemas.telemetry import v1
from schemas.topics import MAX_VALUE_BYTES, SAMPLES

_FIXED64: Final = 1
_VARINT: Final = 0


def _tag(name: str, wire: int) -> int:
    number: int = v1.SampleBatch.DESCRIPTOR.fields_by_name[name].number
    assert number < 16, f"{name}: a tag of one byte is written"
    return number << 3 | wire


_TAIL: Final = struct.Struct("<BQBB")
_SENT: Final = _tag("sent_at_ns", _FIXED64)
_REPLAYED: Final = _tag("replayed", _VARINT)


def sent_again(out: Out, at_ns: int) -> Out:
    """The message as it is to be sent at `at_ns` (ns UTC) after a wait. Only batches of samples carry a time of sending."""
    if out.topic != SAMPLES or not out.value or len(out.value) + _TAIL.size > MAX_VALUE_BYTES:
        return out
    return replace(out, value=out.value + _TAIL.pack(_SENT, at_ns, _REPLAYED, 1))
