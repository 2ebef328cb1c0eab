"""What NVML answers, before anything is understood: a value in NVML's unit, or its return code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

UNINITIALIZED: Final = 1
NOT_SUPPORTED: Final = 3
NOT_FOUND: Final = 6
FUNCTION_NOT_FOUND: Final = 13
GPU_IS_LOST: Final = 15
VERSION_MISMATCH: Final = 18
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

UNSUPPORTED: Final = frozenset((NOT_SUPPORTED, NOT_FOUND, FUNCTION_NOT_FOUND, 25, 26))
"""Codes that will be answered again the next time: no such sensor, call or struct version (25), deprecated here (26)."""


class _Failures(dict[int, Failed]):
    def __missing__(self, code: int) -> Failed:
        self[code] = Failed(code)
        return self[code]


FAILED: Final[Mapping[int, Failed]] = _Failures()
"""One Failed per code: a card without a feature answers the same for each of its fields at each tick."""


def unsupported(reply: Reply | None) -> bool:
    """Whether asking again before the next look at what the device has is a waste."""
    return reply is None or (isinstance(reply, Failed) and reply.code in UNSUPPORTED)


def total(counters: Iterable[Reply | None]) -> int | Failed:
    """Sum of those that the device has; Failed where one it has could not be read, or it has none."""
    known = [c for c in counters if not unsupported(c)]
    failed = next((c for c in known if not isinstance(c, int)), None if known else FAILED[NOT_SUPPORTED])
    if failed is not None:
        return failed if isinstance(failed, Failed) else FAILED[UNKNOWN]
    return sum(c for c in known if isinstance(c, int))


def text(raw: str | bytes) -> str:
    """A text of NVML's, whatever its bytes are."""
    return (raw.decode(errors="replace") if isinstance(raw, bytes) else raw).strip("\0 \n")
