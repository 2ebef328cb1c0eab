"""Reads fields of many serialised protobuf messages at once with numpy: a per-message loop costs ten times more (measured).

Messages of one kind carry the same fields in the same order, so all of them are walked side by side, one field number at a time. The
bytes must have been parsed once by protobuf itself: nothing is validated here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from numpy.typing import NDArray

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5
_PADDING: Final = bytes(16)
_DONE: Final = np.iinfo(np.int64).max
_STOPS: Final = np.uint64(0x8080808080808080)
_SEVENS: Final = ~_STOPS
_ONE: Final = np.uint64(1)
_ONE_BYTE: Final = np.uint64(128)
# Closing the gaps between 7-bit groups, by pairs: (mask kept, mask moved, by how many bits).
_CLOSE: Final = tuple(
    (np.uint64(kept), np.uint64(moved), np.uint64(bits))
    for kept, moved, bits in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


class Unusual(Exception):
    """Bytes that are valid but that this reader does not know: groups, field numbers above 2047."""


class Field(NamedTuple):
    """One field number in the messages `who`; `everyone` where that is all of them.

    `value` is raw: uint64, or uint32 for FIXED32; for LENGTH the number of bytes at `position`.
    """

    number: int
    wire: int
    who: NDArray[np.intp]
    position: NDArray[np.int64]
    value: NDArray[np.uint64] | NDArray[np.uint32]
    everyone: bool


class Buffer:
    """Bytes of many messages, seen as numbers at any byte."""

    def __init__(self, parts: list[bytes]) -> None:
        self.raw = b"".join((*parts, _PADDING))
        self._bytes = np.frombuffer(self.raw, np.uint8)
        self._words = np.ndarray((len(self.raw) - 7,), "<u8", self.raw, strides=(1,))
        self._halves = np.ndarray((len(self.raw) - 3,), "<u4", self.raw, strides=(1,))

    def walk(self, start: NDArray[np.int64], end: NDArray[np.int64], wanted: Container[int]) -> Iterator[Field]:
        """The wanted fields of the messages in [start, end), in the order of their numbers within each message. Raises Unusual."""
        all_of_them = np.arange(len(start))
        cursor = start
        tag = self._tags(cursor, end)
        while (lowest := int(tag.min(initial=_DONE))) != _DONE:
            same = tag == lowest
            everyone = bool(same.all())
            who = all_of_them if everyone else np.flatnonzero(same)
            position = (cursor if everyone else cursor[who]) + (1 if lowest < 128 else 2)
            number, wire = lowest >> 3, lowest & 7
            if wire == FIXED32:
                if number in wanted:
                    yield Field(number, wire, who, position, self._halves[position], everyone)
                after = position + 4
            elif wire == FIXED64:
                if number in wanted:
                    yield Field(number, wire, who, position, self._words[position], everyone)
                after = position + 8
            elif wire == VARINT:
                word, size = self._varints(position)
                if number in wanted:
                    yield Field(number, wire, who, position, self._whole(word, position, size), everyone)
                after = position + size
            elif wire == LENGTH:
                word, size = self._varints(position)
                value, position = _closed(word), position + size
                if number in wanted:
                    yield Field(number, wire, who, position, value, everyone)
                after = position + value.astype(np.int64)
            else:
                raise Unusual(f"wire type {wire}")
            if everyone:
                cursor, tag = after, self._tags(after, end)
            else:
                cursor = cursor.copy() if cursor is start else cursor
                cursor[who] = after
                tag[who] = self._tags(after, end[who])

    def _tags(self, position: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tags at these positions; _DONE where a message has ended."""
        tag = self._bytes[position].astype(np.int64)
        long = tag >= 128
        if long.any():
            second = self._bytes[position + 1].astype(np.int64)
            if (long & (position < end) & ((second >= 128) | (second == 0))).any():
                raise Unusual("a field number above 2047")
            tag = np.where(long, tag & 127 | second << 7, tag)
        tag[position >= end] = _DONE
        return tag

    def _varints(self, position: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The first 56 bits of the numbers at these positions, their 7-bit groups not closed yet, and how many bytes each number takes."""
        word = self._words[position]
        stops = ~word & _STOPS
        inside = stops ^ (stops - _ONE)
        size = (np.bitwise_count(inside) >> 3).astype(np.int64)
        if not stops.all():
            long = stops == 0
            size[long] = 9 + (self._bytes[position[long] + 8] >= 128)
        return word & inside & _SEVENS, size

    def _whole(self, word: NDArray[np.uint64], position: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The numbers whose first 56 bits are in `word`."""
        found = _closed(word)
        if (long := size > 8).any():
            ninth, tenth = (self._bytes[position[long] + n].astype(np.uint64) for n in (8, 9))
            found[long] |= (ninth & np.uint64(127)) << np.uint64(56)
            found[long] |= np.where(size[long] > 9, tenth & _ONE, np.uint64(0)) << np.uint64(63)
        return found


def _closed(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The number that groups of seven bits make."""
    if (word < _ONE_BYTE).all():
        return word
    for kept, moved, bits in _CLOSE:
        word = word & kept | (word & moved) >> bits
    return word
