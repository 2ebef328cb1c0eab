"""A reading is a value or an absence with a reason; never 0, -1 or NaN for "could not read"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from schemas.telemetry import v1

Reason = Literal["not_supported", "no_permission", "lost", "stale", "error", "out_of_range"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


@dataclass(frozen=True, slots=True)
class Absent:
    """Why there is no value."""

    reason: Reason


Value = float | int
Reading = Value | Absent

NUMBER_OF_REASON: Final[dict[Reason, int]] = {reason: v1.AbsenceReason.Value(f"ABSENCE_REASON_{reason.upper()}") for reason in REASONS}
REASON_OF_NUMBER: Final[dict[int, Reason]] = {number: reason for reason, number in NUMBER_OF_REASON.items()}
