"""Driver calls made ready once - C function, arguments, room for the answer - so that a tick allocates nothing but what it reads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from collectors.nvidia.reply import FAILED, FUNCTION_NOT_FOUND, Replies
from collectors.nvidia.source import Source


@dataclass(frozen=True, slots=True)
class Call:
    """`run` asks and puts a reply for each of `names`. `otherwise` is asked where the driver does not know this one.

    `stands_for` names a reply that makes this call unnecessary.
    """

    names: tuple[str, ...]
    run: Callable[[Replies], None]
    otherwise: Call | None = None
    stands_for: str = ""


def number(
    source: Source, name: str, symbol: str, *arguments: Any, room: Any = ctypes.c_uint, otherwise: Call | None = None, stands_for: str = ""
) -> Call:
    """A call whose last argument is the place for one number."""
    function = source.function(symbol)
    place = room()
    complete = (*arguments, ctypes.byref(place))

    def run(replies: Replies) -> None:
        code = function(*complete) if function is not None else FUNCTION_NOT_FOUND
        replies[name] = FAILED[code] if code else place.value

    return Call((name,), run, otherwise, stands_for)


def structure(
    source: Source, members: Mapping[str, str], symbol: str, *arguments: Any, room: Any, otherwise: Call | None = None, stands_for: str = ""
) -> Call:
    """A call that fills the struct `room`, its last argument; `members` says which member becomes which reply."""
    function = source.function(symbol)
    complete = (*arguments, ctypes.byref(room))
    names = tuple(members)
    # Reads through the struct's descriptors: the bindings' structs decode each attribute in Python.
    readers = [(name, getattr(type(room), member).__get__) for name, member in members.items()]

    def run(replies: Replies) -> None:
        code = function(*complete) if function is not None else FUNCTION_NOT_FOUND
        if code:
            for name in names:
                replies[name] = FAILED[code]
        else:
            for name, read in readers:
                replies[name] = read(room)

    return Call(names, run, otherwise, stands_for)


def numbers(source: Source, names: tuple[str, ...], symbol: str, *arguments: Any, room: Any = ctypes.c_uint) -> Call:
    """A call whose last arguments are places for several numbers; an empty name leaves one out."""
    function = source.function(symbol)
    places = [room() for _ in names]
    complete = (*arguments, *map(ctypes.byref, places))
    wanted = [(name, place) for name, place in zip(names, places, strict=True) if name]

    def run(replies: Replies) -> None:
        code = function(*complete) if function is not None else FUNCTION_NOT_FOUND
        for name, place in wanted:
            replies[name] = FAILED[code] if code else place.value

    return Call(tuple(name for name, _ in wanted), run)
