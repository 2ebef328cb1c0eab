"""Driver calls made ready once - C function, arguments, room for the answer - so that a tick allocates nothing but what it reads."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from collectors.nvidia.reply import FAILED, FUNCTION_NOT_FOUND, Replies
from collectors.nvidia.source import Source

_FORMAT: Final = {
    ctypes.c_uint: "I",
    ctypes.c_int: "i",
    ctypes.c_ulonglong: "Q",
    ctypes.c_ulong: "Q",
    ctypes.c_ubyte: "B",
}
"""struct's letter for what NVML's structs are made of; c_ulong has eight bytes wherever NVIDIA's driver runs on Linux."""


class Arena:
    """Memory that calls write their answers to; many of one card's share one, so that one look reads them all."""

    def __init__(self, size: int = 128) -> None:
        self.memory = bytearray(size)
        self._used = 0

    def place(self, room: Any) -> tuple[Any, int]:
        """A ctypes object in here with the content of `room`, and where it is."""
        kind, offset = type(room), self._used
        self._used = offset + (ctypes.sizeof(kind) + 7) // 8 * 8
        if self._used > len(self.memory):
            raise MemoryError(f"an arena of {len(self.memory)} bytes is too small")
        placed = kind.from_buffer(self.memory, offset)
        ctypes.memmove(ctypes.byref(placed), ctypes.byref(room), ctypes.sizeof(kind))
        return placed, offset


@dataclass(frozen=True, slots=True)
class Call:
    """One call and where its answers are: `reads` are name, place in the arena and struct's letter.

    `otherwise` is asked where the driver does not know this one. `stands_for` names a reply that makes this call unnecessary.
    """

    function: Callable[..., int] | None
    arguments: tuple[Any, ...]
    memory: bytearray
    reads: tuple[tuple[str, int, str], ...]
    otherwise: Call | None = None
    stands_for: str = ""

    @property
    def name(self) -> str:
        """Its first reply's, which tells whether the driver knows the call."""
        return self.reads[0][0]

    def run(self, replies: Replies) -> None:
        """Ask, and put a reply for each name."""
        self.take(self.function(*self.arguments) if self.function is not None else FUNCTION_NOT_FOUND, replies)

    def take(self, code: int, replies: Replies) -> None:
        """Put the replies after the call answered `code`."""
        for name, offset, form in self.reads:
            replies[name] = FAILED[code] if code else struct.unpack_from(f"={form}", self.memory, offset)[0]


class Together:
    """Calls that are asked one after the other and read at once."""

    def __init__(self, calls: Iterable[Call], arena: Arena) -> None:
        known = [(call.function, call) for call in calls if call.function is not None]
        self.calls = tuple(call for _, call in known)
        self._asked = [(function, call.arguments) for function, call in known]
        reads = sorted((read for call in self.calls for read in call.reads), key=lambda read: read[1])
        self._names = tuple(name for name, _, _ in reads)
        form, at = "=", 0
        for _, offset, letter in reads:
            form += f"{offset - at}x{letter}"
            at = offset + struct.calcsize(f"={letter}")
        self._read = struct.Struct(form).unpack_from
        self._memory = arena.memory

    def run(self, replies: Replies) -> bool:
        """Ask all, and put a reply for each name; True where every call answered."""
        codes = [function(*arguments) for function, arguments in self._asked]
        if any(codes):
            for call, code in zip(self.calls, codes, strict=True):
                call.take(code, replies)
            return False
        replies.update(zip(self._names, self._read(self._memory), strict=True))
        return True


def number(
    source: Source,
    name: str,
    symbol: str,
    *arguments: Any,
    room: Any = ctypes.c_uint,
    otherwise: Call | None = None,
    stands_for: str = "",
    arena: Arena | None = None,
) -> Call:
    """A call whose last argument is the place for one number."""
    arena = arena or Arena()
    place, offset = arena.place(room())
    reads = ((name, offset, _FORMAT[room]),)
    return Call(source.function(symbol), (*arguments, ctypes.byref(place)), arena.memory, reads, otherwise, stands_for)


def structure(
    source: Source,
    members: Mapping[str, str],
    symbol: str,
    *arguments: Any,
    room: Any,
    otherwise: Call | None = None,
    stands_for: str = "",
    arena: Arena | None = None,
) -> Call:
    """A call that fills a struct like `room`, its last argument; `members` says which member becomes which reply."""
    kind = type(room)
    arena = arena or Arena(ctypes.sizeof(kind) + 8)
    place, offset = arena.place(room)
    kinds = {field[0]: field[1] for field in kind._fields_}
    reads = tuple((name, offset + getattr(kind, member).offset, _letter(kinds[member])) for name, member in members.items())
    return Call(source.function(symbol), (*arguments, ctypes.byref(place)), arena.memory, reads, otherwise, stands_for)


def numbers(
    source: Source, names: tuple[str, ...], symbol: str, *arguments: Any, room: Any = ctypes.c_uint, arena: Arena | None = None
) -> Call:
    """A call whose last arguments are places for several numbers; an empty name leaves one out."""
    arena = arena or Arena()
    places = [arena.place(room()) for _ in names]
    reads = tuple((name, offset, _FORMAT[room]) for name, (_, offset) in zip(names, places, strict=True) if name)
    return Call(source.function(symbol), (*arguments, *(ctypes.byref(place) for place, _ in places)), arena.memory, reads)


def _letter(kind: Any) -> str:
    if issubclass(kind, ctypes.Array):
        return f"{ctypes.sizeof(kind)}s"
    return _FORMAT[kind]
