"""What the Faust app makes of a message before any of our code sees it."""

from __future__ import annotations

from types import SimpleNamespace

from schemas.topics import SAMPLES
from streams.apps.app import _record


def test_a_header_without_a_value_is_an_empty_one() -> None:
    message = SimpleNamespace(partition=1, offset=2, key=b"k", value=b"v", timestamp=3.0, headers=[("schema-version", None), ("a", b"b")])
    found = _record(SAMPLES, message)
    assert found.headers == (("schema-version", b""), ("a", b"b"))
    assert found.timestamp_ns == 3_000_000_000
