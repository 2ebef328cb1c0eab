"""How much of a series' past still speaks for its future: gaps bridged or cut, and nothing from before the last change of level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WINDOW: Final = 3
"""Medians of this many points are compared: one stray value is not a change of level."""

_STEP_SHARE: Final = 0.7
"""A single difference that makes up this much of a change is a jump; on a slope of three steps it is a third."""

_STEP_SIGMAS: Final = 8.0
_STEP_RESOLUTIONS: Final = 8.0


def bridge(y: NDArray[np.float64], max_gap: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Gaps (NaN) of up to `max_gap` points filled by straight lines, and the column from which each row has no gap left.

    `y` is (n, h), its last column finite in every row that matters; a row without any value starts at h.
    """
    width = y.shape[1]
    at = np.arange(width)
    valid = np.isfinite(y)
    before = np.maximum.accumulate(np.where(valid, at, -1), axis=1)
    after = np.minimum.accumulate(np.where(valid, at, width)[:, ::-1], axis=1)[:, ::-1]
    inside = ~valid & (before >= 0) & (after < width)
    length = after - before
    fill = inside & (length - 1 <= max_gap)
    rows, columns = np.nonzero(fill)
    left, right = before[rows, columns], after[rows, columns]
    low, high = y[rows, left], y[rows, right]
    out = y.copy()
    out[rows, columns] = low + (high - low) * (columns - left) / (right - left)
    start = np.where(np.isfinite(out), -1, at).max(axis=1, initial=-1) + 1
    return out, start


def noise(y: NDArray[np.float64], floor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Robust standard deviation of one-step changes around their median, shape (n,), at least `floor`; `y` is (n, h) with NaN."""
    changes = np.diff(y, axis=1)
    deviation = np.abs(changes - _median(changes)[:, None])
    return np.fmax(1.4826 * _median(deviation), floor)


def last_shift(
    y: NDArray[np.float64], fastest: NDArray[np.float64], sigma: NDArray[np.float64], resolution: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Column at which each row's present level or slope begins: the one after its last change of level; 0 where there was none.

    `y` is (n, h) with NaN before its start. A change is a move of more than `fastest` per step, kept up over medians of three, or a
    jump: a single step that stands out of the noise.
    """
    n, width = y.shape
    if width < 2 * _WINDOW:
        return np.zeros(n, dtype=np.int64)
    padded = np.concatenate((y, np.repeat(y[:, -1:], _WINDOW - 1, axis=1)), axis=1)
    medians = _median3(padded[:, :-2], padded[:, 1:-1], padded[:, 2:])
    change = np.abs(medians[:, _WINDOW:] - medians[:, : width - _WINDOW])
    single = np.abs(np.diff(y, axis=1))
    largest = np.fmax(np.fmax(single[:, 2:], _shifted(single, 1)), _shifted(single, 2))
    fast = change > _WINDOW * fastest[:, None]
    jump = (change > np.maximum(_STEP_SIGMAS * sigma, _STEP_RESOLUTIONS * resolution)[:, None]) & (largest >= _STEP_SHARE * change)
    found = fast | jump
    columns = np.arange(_WINDOW, width)
    last = np.where(found, columns, -1).max(axis=1, initial=-1)
    return np.where(last < 0, 0, last + 1).astype(np.int64)


def _shifted(single: NDArray[np.float64], by: int) -> NDArray[np.float64]:
    """`single` (n, h - 1) seen `by` steps earlier, aligned with columns 3 .. h of the series."""
    return single[:, 2 - by : single.shape[1] - by]


def _median3(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    out: NDArray[np.float64] = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    return out


def _median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row medians without NaN; NaN for a row of nothing else, without numpy's warning of it."""
    ordered = np.sort(values, axis=1)  # NaN sort to the end
    counts = np.isfinite(values).sum(axis=1)
    rows = np.arange(values.shape[0])
    low = ordered[rows, np.maximum(0, (counts - 1) // 2)]
    high = ordered[rows, np.maximum(0, counts // 2) * (counts > 0)]
    out: NDArray[np.float64] = (low + high) / 2
    return out
