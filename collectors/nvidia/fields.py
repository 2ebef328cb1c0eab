"""NVML's field values: many numbers of a device in one driver call, made ready once.

Ids are nvml.h's NVML_FI_DEV_*, with three exceptions that moved between headers (see `slowdown_fields`).
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Mapping
from typing import Final

from collectors.nvidia.reply import FAILED, FUNCTION_NOT_FOUND, NOT_SUPPORTED, UNKNOWN, Count32, Replies, Reply
from collectors.nvidia.source import Handle, Source

ALL_LINKS: Final = 0xFFFFFFFF
"""Scope of a field of links that asks for all of them together."""

Field = int | tuple[int, int]
"""An id, or an id and its scope (a link's number)."""

_MOST: Final = 64
"""Values in one call; more are asked for in several, so that no call holds the driver's lock for long."""

_ENTRY: Final = struct.Struct("=IIqqIIQ")
"""nvmlFieldValue_t: id, scope, timestamp, latency, type of the value, return code, value."""

_LETTER: Final = {1: "I4x", 3: "Q", 4: "q", 5: "i4x", 6: "H6x"}
"""struct's letters by nvmlValueType_t, for the union's eight bytes; a double may be no number and is looked at."""

COUNT32: Final = (197, 198)
"""Counters of bytes that drivers give as 32 bits."""

_DOUBLE: Final = struct.Struct("=Q"), struct.Struct("=d")


class _Part:
    """As many fields as one call takes."""

    def __init__(self, source: Source, handle: Handle, fields: list[tuple[str, Field]]) -> None:
        self.names = tuple(name for name, _ in fields)
        self._function = source.function("nvmlDeviceGetFieldValues")
        blank = bytearray()
        for _, field in fields:
            number, scope = field if isinstance(field, tuple) else (field, 0)
            # A value that the driver leaves untouched must not look like one that it gave.
            blank += _ENTRY.pack(number, scope, 0, 0, 0, UNKNOWN, 0)
        self._blank = bytes(blank)
        self._room = (ctypes.c_char * len(blank))()
        self._arguments = handle, len(fields), self._room
        self._good: tuple[int, ...] = ()
        """Type and return code of each value when all were answered, one after the other."""
        self._read = _ENTRY

    def ask(self, replies: Replies) -> bool:
        ctypes.memmove(self._room, self._blank, len(self._blank))
        code = self._function(*self._arguments) if self._function is not None else FUNCTION_NOT_FOUND
        if code:
            replies.update(dict.fromkeys(self.names, FAILED[code]))
            return False
        if self._good:
            found = self._read.unpack(self._room)
            if found[0::3] + found[1::3] == self._good:
                replies.update(zip(self.names, found[2::3], strict=True))
                return True
        entries = list(_ENTRY.iter_unpack(self._room.raw))
        replies.update({name: decode(e[0], e[4], e[5], e[6]) for name, e in zip(self.names, entries, strict=True)})
        self._learn(entries)
        return bool(self._good)

    def _learn(self, entries: list[tuple[int, ...]]) -> None:
        """Where every value was given as a type that struct reads by itself, read them so the next time."""
        letters = [_LETTER.get(entry[4], "") if not (entry[4] == 1 and entry[0] in COUNT32) else "" for entry in entries]
        if all(letters) and not any(entry[5] for entry in entries):
            self._read = struct.Struct("=" + "".join(f"24xII{letter}" for letter in letters))
            self._good = tuple(entry[4] for entry in entries) + (0,) * len(entries)
        else:
            self._good = ()


class FieldBatch:
    """A fixed set of fields of one device."""

    def __init__(self, source: Source, handle: Handle, fields: Mapping[str, Field]) -> None:
        self.names = tuple(fields)
        each = list(fields.items())
        self._parts = [_Part(source, handle, each[first : first + _MOST]) for first in range(0, len(each), _MOST)]

    def ask(self, replies: Replies) -> bool:
        """Put a reply for each of `names`; True where each is known to be a value."""
        good = [part.ask(replies) for part in self._parts]
        return all(good)


def decode(number: int, kind: int, result: int, raw: int) -> Reply:
    """The value as its type says (nvmlValueType_t); `raw` are the union's eight bytes."""
    if result:
        # An older driver calls an id that it does not know an invalid argument (2).
        return FAILED[NOT_SUPPORTED if result == 2 else result]
    match kind:
        case 0:
            value: float = _DOUBLE[1].unpack(_DOUBLE[0].pack(raw))[0]
            return value if math.isfinite(value) else FAILED[UNKNOWN]
        case 1:
            return Count32(raw & 0xFFFFFFFF) if number in COUNT32 else raw & 0xFFFFFFFF
        case 4:
            return raw - (1 << 64) if raw >> 63 else raw
        case 5:
            low = raw & 0xFFFFFFFF
            return low - (1 << 32) if low >> 31 else low
        case 6:
            return raw & 0xFFFF
        case _:
            return raw


def slowdown_fields(driver_version: str) -> dict[str, Field]:
    """Ids of the time spent in hardware thermal slowdown and in power brake; none where the driver's version does not tell them.

    As the bindings of each branch have them: 575 and 580 at 252 and 253; 590 to 615 at 270 and 271, where the old numbers mean power
    smoothing; 570 and before have none.
    """
    branch = driver_version.partition(".")[0]
    if not branch.isdecimal() or int(branch) < 575:
        return {}
    first = 251 if int(branch) < 590 else 269
    return {"hardware_thermal_nanoseconds": first + 1, "power_brake_nanoseconds": first + 2}
