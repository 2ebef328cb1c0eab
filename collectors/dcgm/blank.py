"""DCGM's blank values: numbers that say "nothing here" and why, in every width, and as other tools have multiplied them."""

from __future__ import annotations

from math import isnan
from typing import Final

from schemas.values import Absent, Reading, Reason

_BASES: Final[tuple[int, ...]] = (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 1 << 47)
"""DCGM_INT32_BLANK, DCGM_INT64_BLANK and DCGM_FP64_BLANK (dcgm_structs.h)."""

_REASONS: Final[tuple[Reason, ...]] = ("error", "not_supported", "not_supported", "no_permission")
"""Of the base and what is added to it: blank, not found, not supported, not permitted."""

TEXT: Final[frozenset[str]] = frozenset({"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"})
"""The same in strings, as they come in labels."""


def _blanks() -> dict[float, Reason]:
    found: dict[float, Reason] = {}
    for base in _BASES:
        for added, why in enumerate(_REASONS):
            blank = base + added
            # x100, /100: percent or ratios were made of it (slurm-job-exporter#53). As a float, an int64 blank loses its reason.
            for shape in (blank, blank * 100, float(blank), float(blank * 100), blank / 100):
                found.setdefault(shape, why)
    found[0xFFFFFFFFFFFFFFFF] = found[float(0xFFFFFFFFFFFFFFFF)] = "error"  # NVML_VALUE_NOT_AVAILABLE, passed on
    return found


_BLANKS: Final = _blanks()


def reading(value: float) -> Reading:
    """The number, or why it is none."""
    why = _BLANKS.get(value)
    if why is not None:
        return Absent(why)
    return Absent("error") if isnan(value) else value


def text(value: str) -> str:
    """A label's value; empty where it is a blank or a placeholder."""
    cleaned = value.strip()
    return "" if cleaned in TEXT or cleaned.upper() in ("N/A", "[N/A]", "UNKNOWN") else cleaned
