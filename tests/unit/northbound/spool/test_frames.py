"""Frames survive the round trip, and whatever is done to the bytes costs no more than the frames it touches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schemas.codec import HEADERS
from schemas.flow import Out
from xpulse.northbound.spool.frames import MARKER, Entry, Frame, Gap, count, encode, read

outs = st.builds(
    Out,
    topic=st.text(max_size=30),
    key=st.binary(max_size=40),
    value=st.none() | st.binary(max_size=200),
    headers=st.lists(st.tuples(st.text(max_size=10), st.binary(max_size=10)), max_size=3).map(tuple),
    timestamp_ns=st.none() | st.integers(0, 2**63 - 1),
)
entries = st.lists(st.builds(Entry, outs, st.integers(0, 2**63 - 1)), max_size=6)


def read_all(data: bytes) -> tuple[list[Entry], list[tuple[int, int]]]:
    """What is read of a whole file: its messages, and the places that are none."""
    at, found, gaps = 0, [], []
    while at < len(data):
        match read(data, at, whole=True):
            case Frame(entry, end):
                found.append(entry)
            case Gap(end):
                gaps.append((at, end))
            case None:
                raise AssertionError("a whole file asks for more")
        assert end > at
        at = end
    return found, gaps


@given(entries)
def test_what_is_written_is_read(written: list[Entry]) -> None:
    assert read_all(b"".join(encode(*entry) for entry in written)) == (written, [])


@given(entries, st.data())
def test_a_file_cut_anywhere_gives_every_whole_frame(written: list[Entry], data: st.DataObject) -> None:
    frames = [encode(*entry) for entry in written]
    whole = b"".join(frames)
    cut = data.draw(st.integers(0, len(whole)))
    ends = [sum(map(len, frames[: i + 1])) for i in range(len(frames))]
    kept = sum(end <= cut for end in ends)
    found, gaps = read_all(whole[:cut])
    assert found == written[:kept]
    assert len(gaps) == (0 if cut in (0, *ends) else 1)


@given(entries.filter(bool), st.data())
def test_a_changed_byte_costs_one_frame(written: list[Entry], data: st.DataObject) -> None:
    frames = [encode(*entry) for entry in written]
    whole = bytearray(b"".join(frames))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    hit = next(i for i in range(len(frames)) if place < sum(map(len, frames[: i + 1])))
    found, gaps = read_all(bytes(whole))
    assert found == written[:hit] + written[hit + 1 :]
    assert len(gaps) == 1


@given(entries, st.binary(max_size=20), st.data())
def test_counting_and_reading_agree(written: list[Entry], garbage: bytes, data: st.DataObject) -> None:
    whole = b"".join(encode(*entry) for entry in written)
    place = data.draw(st.integers(0, len(whole)))
    harmed = whole[:place] + garbage + whole[place:]
    found, _ = read_all(harmed)
    assert count(harmed) == (len(found), found[0].at_ns if found else 0)


@given(st.binary(max_size=300))
def test_garbage_is_a_gap(garbage: bytes) -> None:
    found, gaps = read_all(garbage)
    assert found == []
    assert gaps == ([(0, len(garbage))] if garbage else [])


def test_a_part_of_a_file_asks_for_more() -> None:
    frame = encode(Out("t", b"k", b"v", HEADERS), 1)
    assert read(frame[:-1], 0, whole=False) is None
    assert read(b"x" + frame, 0, whole=False) is None


def test_a_body_of_another_layout_is_a_gap() -> None:
    """Marker, length and check are right: written by a release that laid it out otherwise."""
    import struct
    import zlib

    body = b"\xff" * 40
    frame = struct.pack("<4sII", MARKER, len(body), zlib.crc32(body, len(body))) + body
    assert read_all(frame + encode(Out("t", b"k", b"v"), 1)) == ([Entry(Out("t", b"k", b"v"), 1)], [(0, len(frame))])
