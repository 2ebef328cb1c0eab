"""The whole spool: its bound, its lock, a disk without room, and what it says of itself."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from schemas.flow import Out
from schemas.topics import DEVICE_EVENTS, SAMPLES
from xpulse.northbound.spool.folder import InUse, SpoolFolder, force

MAX, SEGMENT = 40_000, 10_000


def open_spool(path: Path, max_bytes: int = MAX) -> SpoolFolder:
    return SpoolFolder(path, max_bytes=max_bytes, segment_bytes=SEGMENT, lock_wait_seconds=0)


def message(n: int, topic: str = SAMPLES) -> Out:
    return Out(topic, b"c/n", b"%04d" % n + b"x" * 996)


def numbers(spool: SpoolFolder, topic: str = SAMPLES) -> list[int]:
    found: list[int] = []
    while entries := spool.lane(topic).read(most_bytes=10**6, most_records=1000):
        found += [int((entry.out.value or b"")[:4]) for entry in entries]
    return found


def test_when_it_is_full_the_oldest_go_and_are_counted(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    for n in range(100):
        spool.append(SAMPLES, [message(n)], n)
        assert spool.disk_bytes <= MAX
    left = numbers(spool)
    assert left == list(range(100 - len(left), 100))
    assert len(left) > 25
    assert spool.dropped == {"spool_full": 100 - len(left)}
    assert spool.dropped_bytes["spool_full"] > 1000 * (100 - len(left))
    assert spool.oldest_ns == left[0]
    spool.close()


def test_samples_go_before_events(tmp_path: Path) -> None:
    """A handful of events is older than every sample, and frees nothing."""
    spool = open_spool(tmp_path)
    spool.append(DEVICE_EVENTS, [message(n, DEVICE_EVENTS) for n in range(3)], 0)
    for n in range(100):
        spool.append(SAMPLES, [message(n)], n)
    assert numbers(spool, DEVICE_EVENTS) == [0, 1, 2]
    assert numbers(spool)[-1] == 99
    spool.close()


def test_what_was_on_its_way_and_went_over_board_is_said(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.append(SAMPLES, [message(n) for n in range(5)], 0, in_flight=True)
    lost: Counter[str] = Counter()
    for n in range(5, 100):
        lost += spool.append(SAMPLES, [message(n)], n)[1]
    assert lost == {SAMPLES: 5}
    spool.close()


def test_more_than_fits_at_once_keeps_the_newest(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.append(SAMPLES, [message(n) for n in range(200)], 0)
    left = numbers(spool)
    assert left == list(range(200 - len(left), 200))
    assert sum(spool.dropped.values()) + len(left) == 200
    spool.close()


class Disk:
    """Writes until it is full; evicting a file makes no room (another process takes it) unless `generous`."""

    def __init__(self, room: int, *, generous: bool) -> None:
        self.room, self.generous = room, generous

    def write(self, fd: int, data: memoryview) -> int:
        if len(data) > self.room:
            if self.generous:
                self.room += SEGMENT
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(data)
        return os.write(fd, data)


def test_a_full_disk_costs_the_oldest(tmp_path: Path) -> None:
    spool = SpoolFolder(tmp_path, max_bytes=MAX, segment_bytes=SEGMENT, write=Disk(15_000, generous=True).write)
    for n in range(40):
        spool.append(SAMPLES, [message(n)], n)
    assert spool.trouble == ""
    left = numbers(spool)
    assert left == list(range(40 - len(left), 40))
    assert spool.dropped == {"spool_disk_full": 40 - len(left)}
    spool.close()


def test_a_disk_that_stays_full_is_an_error_until_it_is_not(tmp_path: Path) -> None:
    disk = Disk(0, generous=False)
    spool = SpoolFolder(tmp_path, max_bytes=MAX, segment_bytes=SEGMENT, write=disk.write)
    with pytest.raises(OSError, match="No space left"):
        spool.append(SAMPLES, [message(0)], 0)
    assert "cannot be written: No space left on device" in spool.trouble
    assert spool.records == 0
    disk.room = 10_000
    spool.append(SAMPLES, [message(1)], 1)
    assert (spool.trouble, numbers(spool)) == ("", [1])
    spool.close()


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    with pytest.raises(InUse, match=f"is used by process {os.getpid()}"):
        open_spool(tmp_path)
    spool.close()
    open_spool(tmp_path).close()


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from schemas.flow import Out; from xpulse.northbound.spool.folder import SpoolFolder\n"
        f"s = SpoolFolder(Path(sys.argv[1]), max_bytes={MAX}, segment_bytes={SEGMENT})\n"
        "s.append('t', [Out('t', b'k', b'0007')], 7); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    spool = open_spool(tmp_path)
    assert (spool.records, spool.oldest_ns, numbers(spool, "t")) == (1, 7, [7])
    spool.close()


def test_damage_is_counted_once(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.append(SAMPLES, [message(n) for n in range(3)], 0)
    (path,) = (tmp_path / SAMPLES).glob("*.segment")
    raw = bytearray(path.read_bytes())
    raw[1500] ^= 1
    path.write_bytes(bytes(raw))
    assert numbers(spool) == [0, 2]
    spool.lane(SAMPLES).rewind()
    assert numbers(spool) == [0, 2]
    assert spool.dropped == {"spool_damaged": 1}
    assert spool.dropped_bytes["spool_damaged"] == len(raw) // 3
    spool.close()


def test_the_folder_is_private_and_what_was_written_can_be_forced(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "spool"
    folder.mkdir(parents=True, mode=0o755)
    spool = open_spool(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert spool.to_sync() == []
    spool.append(SAMPLES, [message(n) for n in range(30)], 0)
    assert len(spool.to_sync()) >= 2
    spool.append(SAMPLES, [message(30)], 0)
    assert force(spool.to_sync()) == ""
    assert spool.to_sync() == []
    spool.close()


def test_a_disk_that_cannot_be_forced_says_so_and_is_let_go() -> None:
    reader, writer = os.pipe()  # what fsync refuses
    assert "cannot be forced to the disk: Invalid argument" in force([reader, writer])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(reader)


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        open_spool(tmp_path / "file" / "spool")
