"""Which series deserve a model: numpy over all series at once finds the few whose rise could reach their limit within the horizon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.growth import Growth, growing, since_reset
from forecasting.regime import bridge, last_shift, noise
from forecasting.stairs import climb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from forecasting.models.model import Kind

_LEAST_R2: Final = 0.9
"""A straight line must explain this much of the window; a curve may (the damped trend tells it from a leak), a step may not."""

_LEAST_RECENT: Final = 0.4
"""The later half must rise at least this share as fast as the earlier: a rise that ends is over."""

_SCATTER: Final = 2.0
"""A window that gets steeper and scatters that many times more (in squares) than a shorter one began before the rise did."""

_SURE_SCATTER: Final = 8.0
"""The same, beyond doubt: chance alone makes four times more out of eight points."""

_GROWTH: Final = 1.15
"""Ratio of one window's length to the next."""

_LEAST_SIGMAS: Final = 5.0
_LEAST_RESOLUTIONS: Final = 4.0
_NEW_GROUND_RESOLUTIONS: Final = 2.0
_LEAST_BEFORE: Final = 0.22
"""Share of a rise's length for which the series must be known from before it; windows are this finely spaced (0.15 / 0.85)."""

_KNOWN: Final = 5
"""A series known for this many times the minimum history needs no time before its rise: it has shown that it does not come back."""

_EMPTY: Final = 0.75
"""Who was this far from the limit (as a share of the scale) not long ago had hardly anything: what then rises is being filled."""

_FILLING: Final = 2.5
"""A model that comes from a slow file server takes up to half an hour: what began empty must rise that much slower to be a leak."""

_HORIZON_SLACK: Final = 1.25
"""Screening may be a quarter too generous; the models decide."""


@dataclass(frozen=True, slots=True)
class Question:
    """All series of one metric, shape (n, h), oldest first, last column the newest value, NaN where nothing is known.

    `limit` is NaN where none is known. `fastest` is the steepest rise per step that is not an allocation, `resolution` the smallest
    change that means anything, both in the unit of `y` and positive. `sign` is 1 where the limit is above, -1 where it is below.
    `scale`, (n,), is what `guard_ratio` is a share of: the distance to the limit must be at most (1 - guard_ratio) * scale; None takes
    the limit itself, so that one of zero needs a scale. A "counter" is cumulative; a fall in it is a reset.
    """

    y: NDArray[np.float64]
    limit: NDArray[np.float64]
    resolution: NDArray[np.float64]
    fastest: NDArray[np.float64]
    guard_ratio: float
    horizon: int
    min_history: int
    min_trend: int
    reach: float
    max_gap: int
    kind: Kind = "gauge"
    sign: int = 1
    scale: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`filled` has its gaps bridged; from column `start` on it is of one regime. `enough`: it may be forecast at all.

    `trend_start` is the first column of the rise of a candidate, else `start`.
    """

    filled: NDArray[np.float64]
    start: NDArray[np.int64]
    enough: NDArray[np.bool_]
    candidate: NDArray[np.bool_]
    trend_start: NDArray[np.int64]


def screen(question: Question) -> Answer:
    """Candidates rise towards a known limit, straight or nearly so, now, on ground they have not come back from before.

    Of counters it is enough that they keep growing fast enough: they never come back.
    """
    if question.sign < 0:
        found = screen(replace(question, y=-question.y, limit=-question.limit, sign=1, scale=_scale(question)))
        return replace(found, filled=-found.filled)
    q = question
    width = q.y.shape[1]
    filled, first_known = bridge(q.y, q.max_gap)
    known = np.where(np.arange(width) >= first_known[:, None], filled, np.nan)
    floor = np.where(np.isfinite(q.resolution), q.resolution, 0.0)
    sigma = noise(known, 0.3 * floor)
    if q.kind == "counter":
        shift = since_reset(known)
    else:
        shift = last_shift(known, np.where(np.isfinite(q.fastest), q.fastest, np.inf), sigma, floor)
    start = np.maximum(first_known, shift)
    last = filled[:, -1]
    with np.errstate(invalid="ignore"):
        near = np.isfinite(last) & np.isfinite(q.limit) & (last < q.limit) & (q.limit - last <= (1 - q.guard_ratio) * _scale(q))
    stair = np.full(len(start), width, dtype=np.int64)
    if q.kind == "gauge" and near.any():
        horizon = _HORIZON_SLACK * q.horizon
        stair[near] = climb(known[near], q.limit[near], floor[near], sigma[near], horizon=horizon, reach=q.reach)
        start = np.minimum(start, stair)
    length = width - start
    enough = np.isfinite(last) & (length >= q.min_history)
    near &= enough
    q = replace(q, fastest=_fastest(q, known))
    candidate = np.zeros(len(last), dtype=np.bool_)
    trend_start, rise_start = start.copy(), start.copy()
    least = np.full(len(last), np.inf)
    rows = np.nonzero(near)[0]
    if q.kind == "counter":
        asked = Growth(q.limit[rows] - last[rows], q.fastest[rows], q.resolution[rows], _HORIZON_SLACK * q.horizon, q.reach)
        longest = growing(filled[rows], length[rows], asked, _windows(q.min_trend, width))
        candidate[rows] = longest > 0
        trend_start[rows] = width - longest
        return Answer(filled, start, enough, candidate, np.where(candidate, trend_start, start))
    for window in _windows(q.min_trend, width):
        fits = rows[length[rows] >= window]
        if fits.size == 0:
            break
        rising, bends_up, scatter = _rising(q, filled[fits, -window:], sigma[fits], fits, window)
        rising[rising] &= _new_ground(known[fits[rising]], q.limit[fits[rising]], q.resolution[fits[rising]], window)
        new = fits[rising]
        candidate[new] = True
        # The longest window that shows the rise, so that a rise that slackens is seen to; but none that begins before the rise does.
        trend_start[fits[rising & (~bends_up | (scatter <= _SCATTER * least[fits]))]] = width - window
        rise_start[fits[rising & (~bends_up | (scatter <= _SURE_SCATTER * least[fits]))]] = width - window
        least[new] = np.minimum(least[new], np.maximum(scatter[rising], (0.1 * q.resolution[new]) ** 2))
    candidate &= _has_before(rise_start - first_known, width - rise_start, q)
    trend_start = np.where(near & (stair < width), stair, trend_start)
    candidate |= near & (stair < width)
    return Answer(filled, start, enough, candidate, np.where(candidate, trend_start, start))


def _scale(q: Question) -> NDArray[np.float64]:
    return np.abs(q.limit) if q.scale is None else q.scale


def _fastest(q: Question, known: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): the steepest rise that is not an allocation, less steep where the series was nearly empty within two horizons."""
    recent = known[:, -2 * q.horizon :]
    lowest = np.where(np.isfinite(recent), recent, np.inf).min(axis=1)
    with np.errstate(invalid="ignore"):
        was_empty = q.limit - lowest >= _EMPTY * _scale(q)
    return np.where(was_empty, q.fastest / _FILLING, q.fastest)


def _has_before(before: NDArray[np.int64], window: NDArray[np.int64], q: Question) -> NDArray[np.bool_]:
    """Whether enough is known from before the rise: what has only ever been seen rising may be the first tooth of a saw."""
    out: NDArray[np.bool_] = (before >= np.maximum(q.min_trend, _LEAST_BEFORE * window)) | (before + window >= _KNOWN * q.min_history)
    return out


def _windows(least: int, most: int) -> Iterator[int]:
    window = float(least)
    while window <= most:
        yield int(window)
        window *= _GROWTH


def _slopes(y: NDArray[np.float64]) -> NDArray[np.float64]:
    at = np.arange(y.shape[1]) - (y.shape[1] - 1) / 2
    out: NDArray[np.float64] = y @ at / (at @ at)
    return out


def _rising(
    q: Question, y: NDArray[np.float64], sigma: NDArray[np.float64], rows: NDArray[np.int64], window: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Which windows, (m, window), hold a rise that would reach the limit within the horizon if it went on.

    Also whether each gets steeper, and the mean square of what a straight line leaves.
    """
    slope = _slopes(y)
    at = np.arange(window) - (window - 1) / 2
    centred = y - y.mean(axis=1, keepdims=True)
    rest = centred - slope[:, None] * at
    total = (centred**2).sum(axis=1)
    half = window // 2
    early, late = _slopes(y[:, :-half]), _slopes(y[:, -half:])
    quarter = max(3, window // 4)
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = 1 - (rest**2).sum(axis=1) / np.where(total > 0, total, np.inf)
        distance = (q.limit[rows] - y[:, -1]) / slope
        rise = slope * (window - 1)
        rising: NDArray[np.bool_] = (
            (slope > 0)
            & (np.maximum(slope, late) < q.fastest[rows])
            & (r2 >= _LEAST_R2)
            & (late >= _LEAST_RECENT * slope)
            & (early > -0.1 * slope)
            & (_slopes(y[:, -quarter:]) > 0.25 * slope)
            & (rise >= np.maximum(_LEAST_SIGMAS * sigma, _LEAST_RESOLUTIONS * q.resolution[rows]))
            & (distance <= _HORIZON_SLACK * q.horizon)
            & (distance <= q.reach * window)
        )
    return rising, late > early, (rest**2).mean(axis=1)


def _new_ground(y: NDArray[np.float64], limit: NDArray[np.float64], resolution: NDArray[np.float64], window: int) -> NDArray[np.bool_]:
    """Whether the newest value is above all that the series reached before this rise and came back from.

    A sawtooth of garbage collection rises as straight as a leak, to where it has been before. What lies before the last time at or
    above the limit does not count: it did not come back from there by itself.
    """
    past = y[:, :-window]
    if past.shape[1] == 0:
        return np.ones(len(y), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        crossed = np.where(past >= limit[:, None], np.arange(past.shape[1]), -1).max(axis=1)
    counts = np.isfinite(past) & (np.arange(past.shape[1]) > crossed[:, None])
    highest = np.where(counts, past, -np.inf).max(axis=1)
    out: NDArray[np.bool_] = y[:, -1] > highest + _NEW_GROUND_RESOLUTIONS * resolution
    return out
