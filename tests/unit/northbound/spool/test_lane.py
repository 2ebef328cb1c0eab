"""One topic's queue on disk: order, what is acknowledged, and what is left after any end."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.flow import Out
from xpulse.northbound.spool.frames import encode
from xpulse.northbound.spool.lane import Evicted, Lane

SEGMENT = 4096
FRAME = len(encode(Out("t", b"k", b"%04d" % 0 + b"x" * 996), 0))


def frames(numbers: Sequence[int]) -> list[bytes]:
    return [encode(Out("t", b"k", b"%04d" % n + b"x" * 996), n) for n in numbers]


def put(lane: Lane, numbers: Sequence[int]) -> None:
    for n in numbers:
        lane.append(frames([n]), n, SEGMENT)


def take(lane: Lane, most: int = 1000) -> list[int]:
    """Numbers read, without acknowledging them."""
    found: list[int] = []
    while len(found) < most and (entries := lane.read(most_bytes=10 * FRAME, most_records=most - len(found))):
        found += [int((entry.out.value or b"")[:4]) for entry in entries]
    return found


def test_first_in_first_out_over_many_files(tmp_path: Path) -> None:
    lane = Lane(tmp_path)
    put(lane, range(20))
    assert (lane.records, lane.disk_bytes, lane.oldest_ns) == (20, 20 * FRAME, 0)
    assert len(list(tmp_path.glob("*.segment"))) == 7
    assert take(lane) == list(range(20))
    lane.acknowledge(4)
    assert (lane.records, lane.oldest_ns) == (16, 4)
    assert len(list(tmp_path.glob("*.segment"))) == 6
    lane.acknowledge(16)
    assert (lane.records, lane.disk_bytes, list(tmp_path.glob("*.segment"))) == (0, 0, [])
    put(lane, [20])
    assert take(lane) == [20]
    lane.close()


def test_what_is_not_acknowledged_is_read_again(tmp_path: Path) -> None:
    lane = Lane(tmp_path)
    put(lane, range(8))
    assert take(lane, 5) == [0, 1, 2, 3, 4]
    lane.acknowledge(2)
    lane.rewind()
    assert take(lane) == [2, 3, 4, 5, 6, 7]
    lane.close()


def test_another_process_goes_on_where_this_one_ended(tmp_path: Path) -> None:
    lane = Lane(tmp_path)
    put(lane, range(8))
    take(lane, 5)
    lane.acknowledge(5)
    again = Lane(tmp_path)  # no close before: as after a kill -9
    assert (again.records, again.oldest_ns) == (3, 5)
    put(again, [8])
    assert take(again) == [5, 6, 7, 8]
    lane.close()
    again.close()


def test_messages_on_their_way_count_as_read(tmp_path: Path) -> None:
    lane = Lane(tmp_path)
    lane.append(frames([0, 1, 2]), 0, SEGMENT, in_flight=True)
    put(lane, [3])
    assert take(lane) == [3]
    lane.rewind()
    assert take(lane) == [0, 1, 2, 3]
    lane.close()


def test_the_oldest_file_goes_whole(tmp_path: Path) -> None:
    lane = Lane(tmp_path)
    put(lane, range(8))
    take(lane, 2)
    assert lane.evict() == Evicted(3, 3 * FRAME, 2)
    assert (lane.records, lane.oldest_ns, take(lane)) == (5, 3, [3, 4, 5, 6, 7])
    lane.acknowledge(5)
    assert lane.records == 0
    lane.close()


def test_a_stretch_ends_at_its_bounds(tmp_path: Path) -> None:
    lane = Lane(tmp_path)
    lane.append(frames(range(10)), 0, SEGMENT)
    assert len(lane.read(most_bytes=3 * FRAME, most_records=9)) == 3
    assert len(lane.read(most_bytes=1, most_records=9)) == 1  # never none
    assert [e.at_ns for e in lane.read(most_bytes=10**6, most_records=9, until_ns=5)] == [4, 5]
    lane.close()


def test_a_full_disk_takes_nothing_of_a_message(tmp_path: Path) -> None:
    """Half of a frame was written when the disk said no: the half is taken back."""
    room = [10_000]

    def write(fd: int, data: memoryview) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = os.write(fd, data[: min(room[0], 700)])
        room[0] = max(0, room[0] - done)
        return done

    lane = Lane(tmp_path, write=write)
    room[0] = FRAME + 700
    put(lane, [0])
    with pytest.raises(OSError, match="No space left"):
        put(lane, [1])
    room[0] = 10_000
    put(lane, [2])
    assert take(lane) == [0, 2]
    assert (lane.damaged, lane.disk_bytes) == (0, 2 * FRAME)
    lane.close()


@pytest.mark.parametrize("harm", ["gone", "short", "unreadable"])
def test_a_file_that_was_taken_away_is_counted_and_passed(tmp_path: Path, harm: str) -> None:
    lane = Lane(tmp_path)
    put(lane, range(9))
    path = sorted(tmp_path.glob("*.segment"))[1]
    match harm:
        case "gone":
            path.unlink()
        case "short":
            os.truncate(path, FRAME + 5)
        case _:
            path.unlink()
            path.mkdir()
    kept = [3] if harm == "short" else []
    found = take(lane)
    assert found == [0, 1, 2, *kept, 6, 7, 8]
    assert lane.damaged == 1
    lane.acknowledge(len(found))
    assert (lane.records, take(lane)) == (0, [])
    lane.close()


@pytest.mark.parametrize("position", [b"", b"\0" * 20, b"nonsense", b"\xff" * 20], ids=["empty", "zeros", "short", "ones"])
def test_without_a_readable_position_everything_is_sent(tmp_path: Path, position: bytes) -> None:
    lane = Lane(tmp_path)
    put(lane, range(2))
    take(lane, 1)
    lane.acknowledge(1)
    lane.close()
    (tmp_path / "position").write_bytes(position)
    again = Lane(tmp_path)
    assert take(again) == [0, 1]
    again.close()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "1.segment").write_text("not a name of ours")
    lane = Lane(tmp_path)
    assert (lane.records, lane.read(most_bytes=1, most_records=1)) == (0, [])
    assert len(list(tmp_path.iterdir())) == 3
    lane.close()


def test_modes_keep_others_out(tmp_path: Path) -> None:
    lane = Lane(tmp_path / "t")
    put(lane, [1])
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "t").iterdir()} == {0o600}
    lane.close()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    written=st.integers(1, 12),
    acknowledged=st.integers(0, 12),
    which=st.integers(0, 10),
    place=st.integers(0, 5 * FRAME),
    flip=st.integers(0, 255),
    more=st.integers(0, 3),
)
def test_a_kill_at_any_byte_costs_what_it_touched(
    tmp_path_factory: pytest.TempPathFactory, written: int, acknowledged: int, which: int, place: int, flip: int, more: int
) -> None:
    """A file is cut (flip 0) or a byte of it is changed; what is read is in order, holds no nonsense, and lacks only what was hit."""
    folder = tmp_path_factory.mktemp("lane")
    lane = Lane(folder)
    put(lane, range(written))
    take(lane, min(acknowledged, written))
    lane.acknowledge(min(acknowledged, written))
    lane.close()
    left = list(range(min(acknowledged, written), written))
    hit: set[int] = set()
    if paths := sorted(folder.glob("*.segment")):
        path = paths[which % len(paths)]
        raw = bytearray(path.read_bytes())
        place %= len(raw)
        inside = [int(raw[i : i + 4]) for i in range(FRAME - 1000, len(raw), FRAME)]
        if flip:
            raw[place] ^= flip
            hit = {inside[place // FRAME]}
        else:
            del raw[place:]
            hit = set(inside[place // FRAME :])
        path.write_bytes(bytes(raw))
    again = Lane(folder)
    put(again, range(100, 100 + more))
    found = take(again)
    assert found == [n for n in (*left, *range(100, 100 + more)) if n not in hit]
    again.acknowledge(len(found))
    assert (take(again), again.records, again.disk_bytes) == ([], 0, 0)
    again.close()
