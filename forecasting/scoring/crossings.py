"""When a limit was really crossed: on the grid of what happened, once per crossing however a value flickers around its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

REST: Final = 10
"""A value must have been on the good side for this many steps (what of them is known, at least three) for a crossing to be a new one."""

LOOK_BACK: Final = 30
_LEAST_REST: Final = 3
_JUMP_STEPS: Final = 3
_JUMP_SHARE: Final = 0.7


@dataclass(frozen=True, slots=True)
class Crossing:
    """`sudden`: most of the way of the last half hour of steps was made in the last three; no trend could have shown it."""

    row: int
    at_ns: int
    sudden: bool


def crossings(
    values: NDArray[np.float64], limits: NDArray[np.float64], sign: int, *, first: int, step_ns: int, since: int, until: int
) -> list[Crossing]:
    """Of (n, w) `values` whose column j is bin `first + j`, those in bins [since, until), by time; `limits` (n,) are NaN where unknown.

    `sign` 1: above the limit is bad, -1: below.
    """
    y, limit = sign * values, sign * limits[:, None]
    with np.errstate(invalid="ignore"):
        bad = y >= limit
    good = np.isfinite(y) & ~bad & np.isfinite(limit)
    low, high = max(1, since - first), min(y.shape[1], until - first)
    found = []
    rows, columns = np.nonzero(bad[:, low:high])
    for row, column in zip(rows.tolist(), (columns + low).tolist(), strict=True):
        start = max(0, column - REST)
        if bad[row, start:column].any() or good[row, start:column].sum() < _LEAST_REST:
            continue
        last = column - 1 - int(np.argmax(good[row, start:column][::-1]))
        found.append(Crossing(row, _when(y[row], float(limit[row, 0]), last, column, first, step_ns), _sudden(y[row], column)))
    return sorted(found, key=lambda crossing: crossing.at_ns)


def _when(y: NDArray[np.float64], limit: float, last: int, column: int, first: int, step_ns: int) -> int:
    """On the straight line from the last good value; a bin's value stands at its end."""
    part = float((limit - y[last]) / (y[column] - y[last]))
    return round((first + last + 1 + part * (column - last)) * step_ns)


def _sudden(y: NDArray[np.float64], column: int) -> bool:
    past = y[max(0, column - LOOK_BACK) : column]
    known = past[np.isfinite(past)]
    if not known.size:
        return False
    recent = y[max(0, column - _JUMP_STEPS) : column]
    recent = recent[np.isfinite(recent)]
    way = float(y[column] - known.min())
    jump = float(y[column] - recent[0]) if recent.size else way
    return way > 0 and jump >= _JUMP_SHARE * way
