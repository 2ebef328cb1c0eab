"""Answers of an endpoint, by the OTLP specification: what is tried again, when, and what never."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsPartialSuccess, ExportMetricsServiceResponse

from xpulse.northbound.otlp.outcome import Later, Outcome, Refused, Taken, of_grpc, of_http, taken

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
PROTO = {"content-type": "application/x-protobuf"}


def retry_info(seconds: int, nanos: int = 0) -> bytes:
    """A google.rpc.Status with a RetryInfo, as servers put it into the trailer."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    duration = (bytes([1 << 3, seconds]) if seconds else b"") + (bytes([2 << 3, 0x80, 0xCA, 0xB5, 0xEE, 0x01]) if nanos else b"")
    packed = field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, field(1, duration))
    return bytes([1 << 3, 8]) + field(2, b"slow down") + field(3, field(1, b"other") + field(2, b"\x08\x01")) + field(3, packed)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {}, Taken()),
        (202, {}, Taken()),
        (429, {"retry-after": "7"}, Later("http_429", "busy", 7.0)),
        (503, {"retry-after": "Tue, 01 Dec 2026 12:00:30 GMT"}, Later("http_503", "busy", 30.0)),
        (503, {"retry-after": "Tue, 01 Dec 2026 11:00:00 GMT"}, Later("http_503", "busy", 0.0)),
        (502, {"retry-after": "soon"}, Later("http_502", "busy", None)),
        (503, {"retry-after": "inf"}, Later("http_503", "busy", None)),
        (504, {}, Later("http_504", "busy", None)),
        (400, {"retry-after": "7"}, Refused("http_400", "busy")),
        (401, {}, Refused("http_401", "busy")),
        (408, {}, Refused("http_408", "busy")),
        (500, {}, Refused("http_500", "busy")),
        (301, {}, Refused("http_301", "busy")),
    ],
    ids=str,
)
def test_http(status: int, headers: dict[str, str], expected: Outcome) -> None:
    assert of_http(status, headers, b" busy\n", NOW) == expected


def test_an_http_error_in_protobuf_is_read() -> None:
    assert of_http(400, PROTO, retry_info(0), NOW) == Refused("http_400", "slow down")


@pytest.mark.parametrize(
    ("code", "trailer", "expected"),
    [
        ("UNAVAILABLE", None, Later("unavailable", "why", None)),
        ("UNAVAILABLE", retry_info(5), Later("unavailable", "why", 5.0)),
        ("DEADLINE_EXCEEDED", None, Later("deadline_exceeded", "why", None)),
        ("CANCELLED", None, Later("cancelled", "why", None)),
        ("RESOURCE_EXHAUSTED", None, Refused("resource_exhausted", "why")),
        ("RESOURCE_EXHAUSTED", retry_info(2, 500_000_000), Later("resource_exhausted", "why", 2.5)),
        ("RESOURCE_EXHAUSTED", retry_info(0), Later("resource_exhausted", "why", 0.0)),
        ("INVALID_ARGUMENT", retry_info(5), Refused("invalid_argument", "why")),
        ("UNAUTHENTICATED", None, Refused("unauthenticated", "why")),
        ("UNIMPLEMENTED", None, Refused("unimplemented", "why")),
        ("INTERNAL", None, Refused("internal", "why")),
    ],
    ids=str,
)
def test_grpc(code: str, trailer: bytes | None, expected: Outcome) -> None:
    assert of_grpc(code, "why", trailer) == expected


def test_partial_success_is_told() -> None:
    answer = ExportMetricsServiceResponse(partial_success=ExportMetricsPartialSuccess(rejected_data_points=3, error_message="too old"))
    assert taken(answer.SerializeToString()) == Taken(3, "too old")
    assert of_http(200, PROTO, answer.SerializeToString(), NOW) == Taken(3, "too old")


def test_a_success_with_an_odd_body_is_a_success() -> None:
    assert taken(b"\xff\xff") == Taken()
    assert of_http(200, {"content-type": "text/plain"}, b"ok", NOW) == Taken()


@given(st.binary(max_size=200))
def test_no_trailer_breaks_it(trailer: bytes) -> None:
    assert isinstance(of_grpc("UNAVAILABLE", "", trailer), Later)
    assert isinstance(of_http(400, PROTO, trailer, NOW), Refused)


@given(st.integers(0, 200), st.integers(0, 255), st.data())
def test_no_damage_to_a_trailer_breaks_it(at: int, byte: int, data: st.DataObject) -> None:
    good = bytearray(retry_info(5))
    good[at % len(good)] = byte
    cut = data.draw(st.integers(0, len(good)))
    assert isinstance(of_grpc("UNAVAILABLE", "", bytes(good[:cut])), Later)
