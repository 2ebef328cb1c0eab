"""What an endpoint made of a request, by the OTLP specification: taken (perhaps not all of it), later again, or never."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

SAID: Final = 200
"""Characters kept of what an endpoint says."""


@dataclass(frozen=True, slots=True)
class Taken:
    """`rejected` points were refused for good, and `said` why (a warning where none was)."""

    rejected: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """The same request again; `after_seconds` is the endpoint's own wish. `reason` is one of a small set of words."""

    reason: str
    said: str = ""
    after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Never: trying again would change nothing."""

    reason: str
    said: str = ""


Outcome = Taken | Later | Refused

_HTTP_LATER: Final = frozenset({429, 502, 503, 504})
_GRPC_LATER: Final = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"})
"""Retryable by the OTLP specification; RESOURCE_EXHAUSTED is only where RetryInfo comes with it."""


def taken(body: bytes) -> Outcome:
    """The answer of a success. A body that is not one is a success all the same: some gateways answer with nothing or with text."""
    try:
        answer = ExportMetricsServiceResponse.FromString(body)
    except DecodeError:
        return Taken()
    partial = answer.partial_success
    return Taken(max(0, partial.rejected_data_points), partial.error_message[:SAID])


def of_http(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> Outcome:
    """An HTTP answer; `now` (aware) is what a Retry-After given as a date is counted from."""
    if 200 <= status < 300:
        return taken(body) if "protobuf" in headers.get("content-type", "") else Taken()
    said = _text(headers, body)
    if status in _HTTP_LATER:
        return Later(f"http_{status}", said, _retry_after(headers.get("retry-after", ""), now))
    return Refused(f"http_{status}", said)


def of_grpc(code: str, details: str, status_bytes: bytes | None) -> Outcome:
    """A gRPC error. `code` is the status's name, `status_bytes` the trailer grpc-status-details-bin."""
    wish = _retry_info(status_bytes) if status_bytes else None
    if code in _GRPC_LATER or (code == "RESOURCE_EXHAUSTED" and wish is not None):
        return Later(code.lower(), details[:SAID], wish)
    return Refused(code.lower(), details[:SAID])


def _text(headers: Mapping[str, str], body: bytes) -> str:
    if "protobuf" in headers.get("content-type", ""):  # google.rpc.Status
        body = next((value for number, value in _fields(body) if number == 2 and isinstance(value, bytes)), b"")
    return body.decode(errors="replace").strip()[:SAID]


def _retry_after(value: str, now: datetime) -> float | None:
    """Seconds from RFC 9110's Retry-After, a number or a date; None where it is neither."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _retry_info(status: bytes) -> float | None:
    """Seconds of google.rpc.RetryInfo inside a google.rpc.Status; read by hand, for one field of two messages is worth no dependency."""
    for number, detail in _fields(status):
        if number != 3 or not isinstance(detail, bytes):
            continue
        packed = dict(_fields(detail))
        kind, content = packed.get(1), packed.get(2, b"")
        if not isinstance(kind, bytes) or not kind.endswith(b"google.rpc.RetryInfo") or not isinstance(content, bytes):
            continue
        delay = dict(_fields(content)).get(1, b"")
        duration = dict(_fields(delay)) if isinstance(delay, bytes) else {}
        seconds, nanos = duration.get(1, 0), duration.get(2, 0)
        if isinstance(seconds, int) and isinstance(nanos, int) and seconds < 1 << 63 and nanos < 10**9:
            return seconds + nanos / 1e9
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each varint and length-delimited field; ends at the first thing that makes no sense."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif kind == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                return
            yield key >> 3, data[at : at + length]
            at += length
        else:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where the next begins; past the end of `data` where it is cut off."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return 0, len(data) + 1
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, len(data) + 1
