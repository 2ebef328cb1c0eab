"""What NVML answers, before anything is understood: a value in NVML's unit, or its return code."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

NOT_SUPPORTED: Final = 3
GPU_IS_LOST: Final = 15
UNKNOWN: Final = 999


@dataclass(frozen=True, slots=True)
class Failed:
    """NVML's return code instead of a value."""

    code: int


@dataclass(frozen=True, slots=True)
class Count32:
    """A counter that NVML gives as 32 bits, so that it wraps: PCIe bytes on the drivers known so far."""

    value: int


Reply = float | int | str | Count32 | Failed
Replies = dict[str, Reply]


def total(counters: Iterable[int | Failed]) -> int | Failed:
    """Sum of those that the device has; Failed where one it has could not be read, or it has none."""
    known = [c for c in counters if not (isinstance(c, Failed) and c.code == NOT_SUPPORTED)]
    failed = next((c for c in known if isinstance(c, Failed)), None if known else Failed(NOT_SUPPORTED))
    return failed if failed is not None else sum(c for c in known if not isinstance(c, Failed))


def field_value(value: Any) -> Reply:
    """The union member that the value's type names (nvmlValueType_t)."""
    if value.nvmlReturn != 0:
        # An older driver calls an id it does not know an invalid argument (2).
        return Failed(NOT_SUPPORTED if value.nvmlReturn == 2 else value.nvmlReturn)
    match value.valueType:
        case 0:
            number = float(value.value.dVal)
            return number if math.isfinite(number) else Failed(UNKNOWN)
        case 1:
            return Count32(value.value.uiVal) if value.fieldId in (197, 198) else int(value.value.uiVal)
        case 2:
            return int(value.value.ulVal)
        case 4:
            return int(value.value.sllVal)
        case 5:
            return int(value.value.siVal)
        case 6:
            return int(value.value.usVal)
        case _:
            return int(value.value.ullVal)


def text(raw: str | bytes) -> str:
    return (raw.decode(errors="replace") if isinstance(raw, bytes) else raw).strip()
