"""The messages of one topic on disk, in order: written at one end, read at the other, forgotten when the broker has them.

Kafka orders nothing between topics, so each topic has a queue of its own: one that the broker does not take (it does not exist, or the
agent may not write to it) holds up no other. A new process never writes behind what another left: its last frame may be torn.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from xpulse.northbound.spool.segment import Segment, name, number_of, stretch, take_stock

if TYPE_CHECKING:
    from pathlib import Path

    from xpulse.northbound.spool.frames import Entry

Write = Callable[[int, memoryview], int]
"""os.write, or what stands for it in a test of a full disk."""

_POSITION: Final = struct.Struct("<QQ")
_CHECK: Final = struct.Struct("<I")
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_MOST_WRITTEN: Final = 8
"""Full segments that are kept open until they are forced to the disk; where more are written meanwhile, the kernel sees to them."""


class Place(NamedTuple):
    """Segment and offset in it."""

    segment: int
    offset: int


class Evicted(NamedTuple):
    """What went with a segment; `in_flight` of its `records` were read and not yet acknowledged."""

    records: int
    bytes: int
    in_flight: int


class _InFlight(NamedTuple):
    behind: Place
    at_ns: int


class Lane:
    """`records` and `disk_bytes` are what it holds now; `damaged` places of `damaged_bytes` were stepped over. Not thread-safe.

    Delivery is at least once: what was acknowledged is noted in a file that is not forced to the disk.
    """

    def __init__(self, folder: Path, *, write: Write = os.write) -> None:
        """Take up what an earlier process left. Raises OSError where the folder cannot be used."""
        folder.mkdir(mode=0o700, exist_ok=True)
        self.damaged = 0
        self.damaged_bytes = 0
        self._folder, self._write = folder, write
        self._fd = -1
        self._unsynced = False
        self._written: list[int] = []
        self._in_flight: deque[_InFlight] = deque()
        self._position_fd = os.open(folder / "position", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._acknowledged = _parsed(os.pread(self._position_fd, _POSITION.size + _CHECK.size, 0))
        self._acknowledged_at_ns = 0
        self._segments = self._found()
        self._cursor = self._acknowledged
        self._damage_seen = Place(0, 0)
        self._next = max([self._acknowledged.segment, *(s.number for s in self._segments)]) + 1

    @property
    def records(self) -> int:
        return sum(segment.records for segment in self._segments)

    @property
    def disk_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def oldest_ns(self) -> int:
        """When the oldest message that is not acknowledged was written; 0 where there is none."""
        if self._in_flight:
            return self._in_flight[0].at_ns
        if not self._segments:
            return 0
        head = self._segments[0]
        begun = head.number == self._acknowledged.segment and self._acknowledged.offset > 0
        return (self._acknowledged_at_ns if begun else 0) or head.first_at_ns

    def append(self, frames: Sequence[bytes], at_ns: int, segment_bytes: int, *, in_flight: bool = False) -> None:
        """Write frames made at `at_ns`, all into one segment. Raises OSError; then none of them is there.

        `in_flight`: they count as read already (they are on their way to the broker). Only where nothing else is left to read.
        """
        data = b"".join(frames)
        if self._fd < 0 or (self._segments[-1].size and self._segments[-1].size + len(data) > segment_bytes):
            self._begin_segment()
        segment, written, view = self._segments[-1], 0, memoryview(data)
        try:
            while written < len(data):
                written += self._write(self._fd, view[written:])
        except OSError:
            self._cut(segment)
            raise
        if not segment.records:
            segment.first_at_ns = at_ns
        if in_flight:
            end = segment.size
            for frame in frames:
                end += len(frame)
                self._in_flight.append(_InFlight(Place(segment.number, end), at_ns))
            self._cursor = Place(segment.number, end)
        segment.size += len(data)
        segment.records += len(frames)
        self._unsynced = True

    def read(self, *, most_bytes: int, most_records: int, until_ns: int | None = None) -> list[Entry]:
        """The next messages, of one segment; they are in flight until `acknowledge` or `rewind`. Empty: nothing is left to read."""
        while (segment := self._at_cursor()) is not None:
            offset = self._cursor.offset
            found = stretch(segment, offset, most_bytes=most_bytes, most_records=most_records, until_ns=until_ns)
            for first, end in found.gaps:
                if (behind := Place(segment.number, end)) > self._damage_seen:  # what is read again is not counted again
                    self.damaged += 1
                    self.damaged_bytes += end - first
                    self._damage_seen = behind
            self._cursor = Place(segment.number, found.end)
            if found.entries:
                self._in_flight.extend(_InFlight(Place(segment.number, end), entry.at_ns) for entry, end in found.entries)
                return [entry for entry, _ in found.entries]
        if not self._in_flight:
            self.clear()
        return []

    def acknowledge(self, count: int) -> None:
        """The oldest `count` messages in flight have arrived."""
        if count <= 0:
            return
        by_number = {segment.number: segment for segment in self._segments}
        for _ in range(count):
            behind, at_ns = self._in_flight.popleft()
            by_number[behind.segment].records -= 1
            self._acknowledged, self._acknowledged_at_ns = behind, at_ns
        self._note()
        while self._segments and (head := self._segments[0]).number <= self._acknowledged.segment:
            if head.number == self._acknowledged.segment and self._acknowledged.offset < head.size:
                break
            self._remove_head()

    def rewind(self) -> None:
        """What is in flight is to be read again."""
        self._in_flight.clear()
        self._cursor = self._acknowledged

    def evict(self) -> Evicted:
        """Remove the oldest segment, whatever is in it."""
        head = self._segments[0]
        in_flight = 0
        while self._in_flight and self._in_flight[0].behind.segment == head.number:
            self._in_flight.popleft()
            in_flight += 1
        self._remove_head()
        return Evicted(head.records, head.size, in_flight)

    def clear(self) -> None:
        """Remove everything."""
        self._in_flight.clear()
        while self._segments:
            self._remove_head()

    def to_sync(self) -> list[int]:
        """Descriptors of the caller's own, to be forced to the disk and closed; none where nothing was written since. Raises OSError."""
        found, self._written = self._written, []
        if self._unsynced and self._fd >= 0:
            self._unsynced = False
            found.append(os.dup(self._fd))
        if found:
            found.append(os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC))
        return found

    def close(self) -> None:
        self._close_segment()
        self._forget_written()
        os.close(self._position_fd)

    def _at_cursor(self) -> Segment | None:
        """The segment that is read next, the cursor put into it; None at the end."""
        for segment in self._segments:
            if segment.number > self._cursor.segment:
                self._cursor = Place(segment.number, 0)
            if segment.number == self._cursor.segment and self._cursor.offset < segment.size:
                return segment
        return None

    def _found(self) -> deque[Segment]:
        numbered = sorted((number, path) for path in self._folder.iterdir() if (number := number_of(path)) is not None)
        segments: deque[Segment] = deque()
        for number, path in numbered:
            acknowledged = self._acknowledged.offset if number == self._acknowledged.segment else 0
            try:
                segment = Segment(number, path, path.stat().st_size)
            except OSError:  # gone since it was listed
                continue
            if number < self._acknowledged.segment or acknowledged >= segment.size:
                _unlink(path)
                continue
            take_stock(segment, acknowledged)
            segments.append(segment)
        return segments

    def _begin_segment(self) -> None:
        path = self._folder / name(self._next)
        fd = os.open(path, _FLAGS, 0o600)
        if self._unsynced and self._fd >= 0 and len(self._written) < _MOST_WRITTEN:
            self._written.append(self._fd)
        else:
            self._close_segment()
        self._fd = fd
        self._segments.append(Segment(self._next, path))
        self._next += 1

    def _cut(self, segment: Segment) -> None:
        try:
            os.ftruncate(self._fd, segment.size)
        except OSError:  # the torn end stays behind `size`, where nothing reads; nothing is written behind it
            self._close_segment()

    def _remove_head(self) -> None:
        head = self._segments.popleft()
        if not self._segments:
            self._close_segment()
            self._forget_written()
        _unlink(head.path)

    def _close_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _forget_written(self) -> None:
        while self._written:
            os.close(self._written.pop())

    def _note(self) -> None:
        raw = _POSITION.pack(*self._acknowledged)
        with contextlib.suppress(OSError):  # then more is sent a second time after a crash
            os.pwrite(self._position_fd, raw + _CHECK.pack(zlib.crc32(raw)), 0)


def _parsed(raw: bytes) -> Place:
    """The place noted last; the very start where nothing readable was."""
    if len(raw) == _POSITION.size + _CHECK.size:
        place, (check,) = raw[: _POSITION.size], _CHECK.unpack_from(raw, _POSITION.size)
        if zlib.crc32(place) == check:
            return Place(*_POSITION.unpack(place))
    return Place(0, 0)


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):  # left behind it is only sent again
        path.unlink()
