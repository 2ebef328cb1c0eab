"""One file of the spool: what of it is known without reading it, and how a stretch of it is read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from xpulse.northbound.spool.frames import Entry, Frame, Gap, count, read

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX: Final = ".segment"
_BLOCK_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class Segment:
    """`size` bytes hold frames; `records` of them are not acknowledged; the first was written at `first_at_ns`."""

    number: int
    path: Path
    size: int = 0
    records: int = 0
    first_at_ns: int = 0


class Stretch(NamedTuple):
    """Messages with the offset behind each; damaged places with their first and last offset; `end` is where reading goes on."""

    entries: list[tuple[Entry, int]]
    gaps: list[tuple[int, int]]
    end: int


def name(number: int) -> str:
    return f"{number:016d}{SUFFIX}"


def number_of(path: Path) -> int | None:
    """The number in a segment's name; None for any other file."""
    stem = path.name.removesuffix(SUFFIX)
    return int(stem) if path.name.endswith(SUFFIX) and stem.isdecimal() and len(stem) == 16 else None


def stretch(segment: Segment, offset: int, *, most_bytes: int, most_records: int, until_ns: int | None = None) -> Stretch:
    """Messages from `offset` on: at most so many, none written after `until_ns` but the first. Damage is stepped over.

    A file that cannot be read, or is shorter than it was, is one damaged place to its end.
    """
    try:
        fd = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return _lost(segment, offset)
    try:
        try:
            found = _stretch(fd, segment, offset, max(most_bytes, _BLOCK_BYTES), most_bytes, most_records, until_ns)
            if found is None:  # a frame larger than the block, or damage: seldom, so the rest is read as a whole
                found = _stretch(fd, segment, offset, segment.size - offset, most_bytes, most_records, until_ns)
        except OSError:
            found = None
    finally:
        os.close(fd)
    return found or _lost(segment, offset)


def take_stock(segment: Segment, offset: int) -> None:
    """Count the messages from `offset` on. A file that cannot be read has none: reading it tells why it is passed over."""
    try:
        fd = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        segment.records, segment.first_at_ns = count(os.pread(fd, segment.size - offset, offset))
    except OSError:
        return
    finally:
        os.close(fd)


def _stretch(
    fd: int, segment: Segment, offset: int, block: int, most_bytes: int, most_records: int, until_ns: int | None
) -> Stretch | None:
    """None where the block ends before its first frame does."""
    data = os.pread(fd, min(block, segment.size - offset), offset)
    whole = block >= segment.size - offset
    at = 0
    gaps: list[tuple[int, int]] = []
    entries: list[tuple[Entry, int]] = []
    while at < len(data) and len(entries) < most_records:
        match read(data, at, whole=whole):
            case None:
                return Stretch(entries, gaps, offset + at) if entries else None
            case Gap(end):
                gaps.append((offset + at, offset + end))
                at = end
            case Frame(entry, end):
                if entries and (end > most_bytes or (until_ns is not None and entry.at_ns > until_ns)):
                    break
                entries.append((entry, offset + end))
                at = end
    if whole and at == len(data) < segment.size - offset:  # shorter than it was
        start = gaps.pop()[0] if gaps and gaps[-1][1] == offset + at else offset + at
        return Stretch(entries, [*gaps, (start, segment.size)], segment.size)
    return Stretch(entries, gaps, offset + at)


def _lost(segment: Segment, offset: int) -> Stretch:
    return Stretch([], [(offset, segment.size)], segment.size)
