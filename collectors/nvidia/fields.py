"""NVML's field values: many numbers of a device in one driver call, made ready once.

Ids are nvml.h's NVML_FI_DEV_*, with three exceptions that moved between headers (see `slowdown_fields`).
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Mapping
from typing import Any, Final

from collectors.nvidia.reply import FAILED, NOT_SUPPORTED, UNKNOWN, Count32, Replies, Reply
from collectors.nvidia.source import Handle, Source

ALL_LINKS: Final = 0xFFFFFFFF
"""Scope of a field of links that asks for all of them together."""

Field = int | tuple[int, int]
"""An id, or an id and its scope (a link's number)."""

_MOST: Final = 64
"""Values in one call; more are asked for in several, so that no call holds the driver's lock for long."""

_ENTRY: Final = struct.Struct("=IIqqIIQ")
"""nvmlFieldValue_t: id, scope, timestamp, latency, type of the value, return code, value."""

_DOUBLE: Final = struct.Struct("=Q"), struct.Struct("=d")


class FieldBatch:
    """A fixed set of fields of one device."""

    def __init__(self, source: Source, handle: Handle, fields: Mapping[str, Field]) -> None:
        self.names = tuple(fields)
        self._function = source.function("nvmlDeviceGetFieldValues")
        self._parts: list[tuple[tuple[str, ...], tuple[Any, ...], Any, bytes]] = []
        each = list(fields.items())
        for first in range(0, len(each), _MOST):
            part = each[first : first + _MOST]
            blank = bytearray()
            for _, field in part:
                number, scope = field if isinstance(field, tuple) else (field, 0)
                # A value that the driver leaves untouched must not look like one that it gave.
                blank += _ENTRY.pack(number, scope, 0, 0, 0, UNKNOWN, 0)
            room = (ctypes.c_char * len(blank))()
            names = tuple(name for name, _ in part)
            self._parts.append((names, (handle, len(part), room), room, bytes(blank)))

    def ask(self, replies: Replies) -> None:
        """Put a reply for each of `names`."""
        for names, arguments, room, blank in self._parts:
            room.raw = blank
            code = self._function(*arguments) if self._function is not None else 13
            if code:
                for name in names:
                    replies[name] = FAILED[code]
                continue
            for name, (number, _, _, _, kind, result, raw) in zip(names, _ENTRY.iter_unpack(room.raw), strict=True):
                replies[name] = raw if kind == 3 and not result else decode(number, kind, result, raw)  # most are of kind 3


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
            return Count32(raw & 0xFFFFFFFF) if number in (197, 198) else raw & 0xFFFFFFFF
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
