"""One driver call as a tape has it: its name, what tells it from others of that name, its code, and what it wrote where it was told to.

A call's arguments are numbers and handles (they go in), and places that the driver fills (they come out, and some go in too: the version
of a struct, the ids of field values). Nothing here knows a call by name but the few whose places say what is asked.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

FIELD_BYTES: Final = 40
"""sizeof(nvmlFieldValue_t): field id and scope are its first two words."""

_FIELDS: Final = "nvmlDeviceGetFieldValues"
_GPM_METRICS: Final = "nvmlGpmMetricsGet"
_VERSION_BYTES: Final = 4
_ASKED_BYTES: Final = {"nvmlDeviceGetTemperatureV": 8}
"""A struct goes in with its version; these calls are asked by the words after it too (the sensor). The rest of it is what came out last."""


class Said(NamedTuple):
    """`key` tells equal questions; `outs` are the bytes of each place after the call, in the order of the arguments."""

    key: str
    code: int
    outs: tuple[bytes, ...]
    microseconds: int = 0


def place_of(argument: Any) -> Any | None:
    """The ctypes object that an argument lets the driver write to; None for what only goes in."""
    if hasattr(argument, "_obj"):  # byref()
        return argument._obj
    if isinstance(argument, ctypes.Array):
        return argument
    return None


def raw(place: Any) -> bytes:
    """The bytes of a ctypes object."""
    return ctypes.string_at(ctypes.addressof(place), ctypes.sizeof(place))


def put(place: Any, data: bytes) -> None:
    """Write bytes over a ctypes object; what is longer than its room is cut, as a smaller struct of another release has less."""
    ctypes.memmove(ctypes.addressof(place), data, min(len(data), ctypes.sizeof(place)))


def key_of(symbol: str, arguments: Sequence[Any], before: Sequence[bytes]) -> str:
    """A text that is equal for equal questions, whatever handles and addresses the process happens to have elsewhere.

    `before` are the bytes of the places when the call was made.
    """
    given = [str(_scalar(argument)) for argument in arguments if place_of(argument) is None]
    if symbol == _FIELDS:
        asked = [data[at : at + 8] for data in before for at in range(0, len(data), FIELD_BYTES)]
    elif symbol == _GPM_METRICS:  # two samples and a list of metrics: each sample is compared with the one before
        asked = []
        given = []
    else:
        words = _ASKED_BYTES.get(symbol, _VERSION_BYTES)
        asked = [data[:words] for data in before if len(data) >= 8]
    digest = hashlib.blake2b(b"".join(asked), digest_size=6).hexdigest() if asked else ""
    return " ".join(part for part in (symbol, *given, digest) if part)


def _scalar(argument: Any) -> int | str:
    if argument is None:
        return 0
    if isinstance(argument, int):
        return argument
    if isinstance(argument, bytes):
        return argument.hex()
    if hasattr(argument, "value"):
        value = argument.value
        return value.hex() if isinstance(value, bytes) else value or 0
    # a handle: a pointer to a struct that nobody may look into
    return ctypes.cast(argument, ctypes.c_void_p).value or 0
