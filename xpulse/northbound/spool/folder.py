"""The spool's folder: one process at a time in it, all topics together within a bound, and counts of what went over board."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from schemas.topics import SAMPLES
from xpulse.northbound.spool.frames import encode
from xpulse.northbound.spool.lane import Lane, Write

if TYPE_CHECKING:
    from pathlib import Path

    from schemas.flow import Out

FULL: Final = "spool_full"
DISK_FULL: Final = "spool_disk_full"
DAMAGED: Final = "spool_damaged"
REASONS: Final = {
    FULL: "the spool reached its max_bytes: the oldest go",
    DISK_FULL: "the disk has no room: the oldest of the spool go",
    DAMAGED: "a place in the spool's files could not be read",
}

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_LOCK_WAIT_SECONDS: Final = 5.0
"""An agent that was told to stop may take two seconds."""


class InUse(Exception):
    """Another process has the folder."""


class SpoolFolder:
    """Not thread-safe. `trouble` says why the last write failed; empty where it did not. `dropped` counts records by reason."""

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int,
        segment_bytes: int,
        write: Write = os.write,
        lock_wait_seconds: float = _LOCK_WAIT_SECONDS,
    ) -> None:
        """Take up what is in the folder, made (0700) where there is none. Raises OSError where that fails, InUse where another is in it."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.folder, self.max_bytes = folder, max_bytes
        self.trouble = ""
        self._segment_bytes, self._write = segment_bytes, write
        self._dropped: Counter[str] = Counter()
        self._dropped_bytes: Counter[str] = Counter()
        self._lock_fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.lanes: dict[str, Lane] = {}
        try:
            self._take_lock(lock_wait_seconds)
            for path in sorted(folder.iterdir()):
                if path.is_dir():
                    self.lanes[path.name] = Lane(path, write=write)
        except BaseException:
            self.close()
            raise

    @property
    def records(self) -> int:
        return sum(lane.records for lane in self.lanes.values())

    @property
    def disk_bytes(self) -> int:
        return sum(lane.disk_bytes for lane in self.lanes.values())

    @property
    def oldest_ns(self) -> int:
        """When the oldest message here was written, ns UTC; 0 where there is none."""
        return min((at_ns for lane in self.lanes.values() if (at_ns := lane.oldest_ns)), default=0)

    @property
    def dropped(self) -> Counter[str]:
        """Records that went over board, by reason (REASONS). A damaged place counts as one: how many lay there cannot be known."""
        return self._dropped + Counter({DAMAGED: sum(lane.damaged for lane in self.lanes.values())})

    @property
    def dropped_bytes(self) -> Counter[str]:
        """The same in bytes on disk."""
        return self._dropped_bytes + Counter({DAMAGED: sum(lane.damaged_bytes for lane in self.lanes.values())})

    def lane(self, topic: str) -> Lane:
        """The topic's queue, made where there is none. Raises OSError."""
        lane = self.lanes.get(topic)
        if lane is None:
            lane = self.lanes[topic] = Lane(self.folder / topic, write=self._write)
        return lane

    def append(self, topic: str, outs: Sequence[Out], at_ns: int, *, in_flight: bool = False) -> tuple[int, Counter[str]]:
        """Write messages behind those of their topic: the bytes it took, and how many that were in flight went over board, by topic.

        Where that is too much for the bound, or for the disk, the oldest go. Raises OSError where it does not help (`trouble` says so);
        then perhaps some were taken: to give all of them again doubles those. `in_flight` as in Lane.append.
        """
        lost: Counter[str] = Counter()
        taken = 0
        try:
            lane = self.lane(topic)
            for frames in _portions([encode(out, at_ns) for out in outs], self._segment_bytes):
                size = sum(map(len, frames))
                while self.disk_bytes + size > self.max_bytes and self._evict(FULL, lost):
                    pass
                try:
                    lane.append(frames, at_ns, self._segment_bytes, in_flight=in_flight)
                except OSError as error:
                    if error.errno not in _NO_ROOM or not self._evict(DISK_FULL, lost):
                        raise
                    lane.append(frames, at_ns, self._segment_bytes, in_flight=in_flight)
                taken += size
        except OSError as error:
            self.trouble = f"spool {self.folder} cannot be written: {error.strerror}"
            raise
        self.trouble = ""
        return taken, lost

    def to_sync(self) -> list[int]:
        """Descriptors to be given to `force`, outside of any lock."""
        found: list[int] = []
        with contextlib.suppress(OSError):  # out of descriptors: next time
            for lane in self.lanes.values():
                found += lane.to_sync()
        return found

    def close(self) -> None:
        """Let go; what was written stays."""
        for lane in self.lanes.values():
            lane.close()
        self.lanes = {}
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _evict(self, reason: str, lost: Counter[str]) -> bool:
        """The oldest segment of the topic that takes most room goes: samples, mostly, and not the few events. False: there is none."""
        topic, lane = max(self.lanes.items(), key=lambda item: (item[1].disk_bytes, item[0] == SAMPLES))
        if not lane.disk_bytes:
            return False
        gone = lane.evict()
        self._dropped[reason] += gone.records
        self._dropped_bytes[reason] += gone.bytes
        lost[topic] += gone.in_flight
        return True

    def _take_lock(self, wait_seconds: float) -> None:
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(self._lock_fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
                    raise InUse(f"the spool {self.folder} is used by process {holder}") from None
                time.sleep(0.05)
            else:
                os.ftruncate(self._lock_fd, 0)
                os.pwrite(self._lock_fd, f"{os.getpid()}\n".encode(), 0)
                return


def force(descriptors: Sequence[int]) -> str:
    """Force to the disk and close; what went wrong, in words. May take as long as the disk does."""
    wrong = ""
    for fd in descriptors:
        try:
            os.fsync(fd)
        except OSError as error:
            wrong = f"the spool cannot be forced to the disk: {error.strerror}"
        finally:
            os.close(fd)
    return wrong


def _portions(frames: list[bytes], most_bytes: int) -> list[list[bytes]]:
    """In order, each no larger than that (or of one frame)."""
    found: list[list[bytes]] = []
    size = most_bytes
    for frame in frames:
        if size + len(frame) > most_bytes:
            found.append([])
            size = 0
        found[-1].append(frame)
        size += len(frame)
    return found
