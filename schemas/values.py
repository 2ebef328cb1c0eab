"""A reading is a value or an absence with a reason; never 0, -1 or NaN for "could not read"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from schemas.telemetry import v1

if TYPE_CHECKING:
    from google.protobuf.descriptor import EnumDescriptor

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


def name_of(enum: EnumDescriptor, number: int) -> str:
    """Lower-case name of an enum's value without its prefix (as the names of this schema have it); unknown_N for one of a later release."""
    value = enum.values_by_number.get(number)
    if value is None:
        return f"unknown_{number}"
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return value.name.removeprefix(prefix).lower()
