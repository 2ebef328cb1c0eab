"""Leaks that come in rare large pieces: a stair that only ever goes up is a trend, though each step looks like a change of level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST_STEPS: Final = 4
"""One is a deploy, two are two; four at a steady pace are a leak."""

_STEP_RESOLUTIONS: Final = 3.0
_STEP_SIGMAS: Final = 6.0
_EXPLAINED: Final = 0.8
"""The steps must make up this share of the rise: what climbs between them too is a slope, and screened as one."""

_LONGEST_GAP: Final = 2.5
"""No two steps lie further apart than this many times the mean; nor is the last one longer ago."""

_BEFORE_GAPS: Final = 2.0
"""The series must be known for so many mean gaps before the first step: what has only ever been seen climbing may be filling up."""


def climb(
    y: NDArray[np.float64],
    limit: NDArray[np.float64],
    resolution: NDArray[np.float64],
    sigma: NDArray[np.float64],
    *,
    horizon: float,
    reach: float,
) -> NDArray[np.int64]:
    """(n,): the last column before the first step of a stair that reaches its limit in time; h where there is none.

    `y` is (n, h), NaN before a row is known; `limit` (n,) is NaN where there is none, then there is no stair either.
    A stair never comes down: it begins after the last time that the series was below what it had been.
    """
    n, width = y.shape
    nothing = np.full(n, width, dtype=np.int64)
    if width < 2 * _LEAST_STEPS:
        return nothing
    least = np.maximum(_STEP_RESOLUTIONS * resolution, _STEP_SIGMAS * sigma)[:, None]
    at = np.arange(width)
    with np.errstate(invalid="ignore"):
        rises = np.diff(y, axis=1, prepend=np.nan) > least
        highest = np.maximum.accumulate(np.where(np.isfinite(y), y, -np.inf), axis=1)
        fell = np.where(highest - y > least, at, -1).max(axis=1)
    # One piece may take two or three samples to appear.
    begins = rises & ~np.pad(rises[:, :-1], ((0, 0), (1, 0))) & (at > fell[:, None])
    count = begins.sum(axis=1)
    rows = np.nonzero((count >= _LEAST_STEPS) & np.isfinite(limit))[0]
    if rows.size == 0:
        return nothing
    some, begun = y[rows], begins[rows]
    first = np.where(begun, at, width).min(axis=1)
    last = np.where(begun, at, -1).max(axis=1)
    each = np.arange(rows.size)
    known = np.where(np.isfinite(some), at, width).min(axis=1)
    base, newest = some[each, np.maximum(first - 1, 0)], some[:, -1]
    gaps = np.maximum(1, last - first) / (count[rows] - 1)
    between = np.where(begun, at - np.maximum.accumulate(np.where(np.pad(begun[:, :-1], ((0, 0), (1, 0))), at - 1, -width), axis=1), 0)
    longest = np.where(begun & (at > first[:, None]), between, 0).max(axis=1)
    rise = newest - base
    stepped = np.where(rises[rows] & (at >= first[:, None]), np.diff(some, axis=1, prepend=np.nan), 0.0).sum(axis=1)
    # From before the first step to before the last one so much was gained: the last piece's time is not over.
    pace = rise / np.maximum(last - first + gaps, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        steps = (limit[rows] - newest) / pace
        climbs = (
            (first - known >= _BEFORE_GAPS * gaps)
            & (longest <= _LONGEST_GAP * gaps)
            & (width - 1 - last <= _LONGEST_GAP * gaps)
            & (stepped >= _EXPLAINED * rise)
            & (steps > 0)
            & (steps <= horizon)
            & (steps <= reach * (last - first))
        )
    nothing[rows[climbs]] = first[climbs] - 1
    return nothing
