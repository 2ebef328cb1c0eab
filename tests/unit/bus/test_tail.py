"""Lines for people: every kind of record, nothing that a terminal would obey."""

from __future__ import annotations

import pytest

from schemas.codec import HEADERS, encode
from schemas.flow import Record
from schemas.telemetry import v1
from schemas.topics import ALERTS_JSON, ALLOCATIONS, DLQ, SAMPLES
from xpulse.bus.dlq import letter_of_record
from xpulse.bus.settings import Bus
from xpulse.bus.tail import known_topic, line
from xpulse.errors import UsageError

AT_NS = 1_790_000_000_000_000_000


def record(topic: str, value: bytes | None, headers: tuple[tuple[str, bytes], ...] = HEADERS, key: bytes = b"c/n") -> Record:
    return Record(topic, 1, 42, key, value, headers, AT_NS)


def test_a_message_is_one_readable_line() -> None:
    batch = v1.SampleBatch(cluster="c", node="n", source="s", agent_epoch=1, taken_at_ns=5)
    out = encode(SAMPLES, b"c/n", batch)
    found = line(record(SAMPLES, out.value))
    assert found.startswith("2026-09-21T")
    assert ' 1/42 c/n cluster: "c" node: "n"' in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (record(ALLOCATIONS, None), " deleted"),
        (record(SAMPLES, None), "unreadable: null value on a topic that is not compacted (null)"),
        (record(SAMPLES, b"\xff\xff"), "unreadable: malformed"),
        (record(SAMPLES, b"x", ()), "unreadable: no schema-version header"),
        (record(ALERTS_JSON, b'{"a":"\x1b[2J"}'), '{"a":"\\x1b[2J"}'),
        (record(SAMPLES, None, key=b"a\nb\x07"), "a\\nb\\x07"),
    ],
    ids=["tombstone", "null", "malformed", "no header", "escape sequence", "key"],
)
def test_what_is_shown(given: Record, shown: str) -> None:
    assert shown in line(given)


def test_a_dead_letter_shows_its_reason() -> None:
    out = letter_of_record(record(SAMPLES, b"v"), "xpulse.detect", "no\nnode")
    found = line(record(DLQ, out.value, out.headers))
    assert "group=xpulse.detect from=xpulse.samples 1/42 attempt=1 size=1 B reason=no\\nnode" in found


def test_topics_are_known_with_and_without_prefix_and_foreign_ones_are_not() -> None:
    bus = Bus(topic_prefix="eu.")
    assert known_topic(bus, "xpulse.samples") == known_topic(bus, "eu.xpulse.samples") == SAMPLES
    with pytest.raises(UsageError, match=r"no topic 'orders'; topics: xpulse.samples, "):
        known_topic(bus, "orders")
