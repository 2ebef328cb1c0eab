"""Dead letters keep what is needed to understand and to repair them."""

from __future__ import annotations

import hashlib

import pytest

from schemas.codec import HEADERS, MAJOR, MINOR
from schemas.flow import DeadLetter, Out, Record, Rejected
from schemas.topics import DLQ, FINDINGS, MAX_VALUE_BYTES, SAMPLES
from xpulse.bus.dlq import KEPT_BYTES, Letter, letter_of_record, read_letter, replayed
from xpulse.bus.outgoing import plan


def letter(value: bytes | None, headers: tuple[tuple[str, bytes], ...] = HEADERS, reason: str = "why") -> Letter:
    out = letter_of_record(Record(SAMPLES, 3, 7, b"c/n", value, headers, 0), "g.xpulse.detect", reason)
    return read_letter(Record(DLQ, 0, 1, out.key, out.value, out.headers, 5))


def test_a_letter_tells_its_source() -> None:
    found = letter(b"x" * 10)
    assert (found.group, found.topic, found.source_partition, found.source_offset) == ("g.xpulse.detect", SAMPLES, 3, 7)
    assert (found.reason, found.schema_version, found.attempt, found.size_bytes) == ("why", f"{MAJOR}.{MINOR}", 1, 10)
    assert found.sha256 == hashlib.sha256(b"x" * 10).hexdigest()
    assert found.headers == HEADERS


def test_a_large_value_is_cut_and_cannot_be_replayed_without_a_repaired_one() -> None:
    found = letter(b"x" * (2 * 1024 * 1024))
    assert (len(found.value), found.size_bytes, found.truncated) == (KEPT_BYTES, 2 * 1024 * 1024, True)
    with pytest.raises(Rejected, match=r"holds 524288 of 2097152 bytes; give the repaired value"):
        replayed(found)
    assert replayed(found, value=b"whole").value == b"whole"


def test_a_null_value_needs_a_repaired_one() -> None:
    assert letter(None).size_bytes is None
    with pytest.raises(Rejected, match="null value"):
        replayed(letter(None))


def test_replay_restores_topic_key_and_headers_and_marks_itself() -> None:
    out = replayed(letter(b"v", (("schema-version", b"9.0"), ("trace", b"t"))), set_headers={"schema-version": "1.0"})
    assert (out.topic, out.key, out.value) == (SAMPLES, b"c/n", b"v")
    assert dict(out.headers) == {"schema-version": b"1.0", "trace": b"t", "xpulse-replay": b"0/1", "xpulse-attempt": b"1"}


def test_attempts_are_counted_over_replays() -> None:
    again = replayed(letter(b"v"))
    assert letter(b"v", again.headers).attempt == 2
    assert replayed(letter(b"v", again.headers)).headers.count(("xpulse-replay", b"0/1")) == 1


def test_huge_foreign_headers_do_not_make_a_letter_unsendable() -> None:
    found = letter_of_record(Record(SAMPLES, 0, 0, None, b"v", (("big", b"x" * 900_000), ("small", b"s")), 0), "g", "r" * 10_000)
    assert sum(len(name) + len(value) for name, value in found.headers) < 100_000


@pytest.mark.parametrize("header", [("schema-version", b"1" * 4_000_000), ("xpulse-attempt", b"9" * 5000), ("schema-version", b"")])
def test_no_header_of_the_original_makes_its_letter_impossible(header: tuple[str, bytes]) -> None:
    found = letter_of_record(Record(SAMPLES, 0, 0, b"k", b"v", (header,), 0), "g", "why")
    assert sum(len(name) + len(value) for name, value in found.headers) < 10_000
    assert read_letter(Record(DLQ, 0, 0, found.key, found.value, found.headers, 0)).attempt == 1


def test_a_foreign_record_in_the_dlq_is_said_to_be_one() -> None:
    with pytest.raises(Rejected, match="is no dead letter of ours: no header"):
        read_letter(Record(DLQ, 0, 0, None, b"hello", (), 0))


def test_an_oversize_output_becomes_a_dead_letter_and_its_neighbours_go_on() -> None:
    outs = [Out(FINDINGS, b"a", b"1"), Out(FINDINGS, b"b", b"x" * (MAX_VALUE_BYTES + 1)), Out(FINDINGS, b"c", b"3")]
    (segment,) = plan(outs, "g").segments
    assert [out.topic for out in segment] == [FINDINGS, DLQ, FINDINGS]
    found = read_letter(Record(DLQ, 0, 0, segment[1].key, segment[1].value, segment[1].headers, 0))
    assert (found.topic, found.source_offset, found.reason) == (FINDINGS, -1, "1048577 bytes to send, 1048576 is the most")


def test_a_dead_letter_is_counted_apart() -> None:
    planned = plan([Out(FINDINGS, b"a", b"1"), DeadLetter(Record(SAMPLES, 0, 0, None, None, (), 0), "r")], "g")
    assert (planned.published, planned.dead_letters) == (1, 1)
