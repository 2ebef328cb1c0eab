"""Tails of the negative-binomial distribution in logarithms, for real numbers of counts, vectorised; numpy has none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_TERMS: Final = 200
_HALVINGS: Final = 50
_TINY: Final = 1e-300


def log_tail(count: Floats, mean: Floats, shape: Floats) -> Floats:
    """Natural logarithm of the probability of `count` or more; 0 where count is 0. Broadcasts; `mean` and `shape` are positive.

    It is the regularised incomplete beta function I_x(count, shape) at x = mean / (mean + shape), by Lentz's continued fraction.
    """
    count, mean, shape = np.broadcast_arrays(count, mean, shape)
    out = np.zeros(count.shape)
    some = count > 0
    if some.any():
        x = mean[some] / (mean[some] + shape[some])
        out[some] = _log_beta_ratio(count[some], shape[some], np.clip(x, _TINY, 1.0 - 1e-15))
    return out


def most_expected(mean: Floats, shape: Floats, surprise: float) -> Floats:
    """The count whose tail has a logarithm of -`surprise`."""
    low = np.zeros(mean.shape)
    high = mean + shape + 1.0
    while (short := -log_tail(high, mean, shape) < surprise).any():
        high = np.where(short, high * 2.0, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        short = -log_tail(middle, mean, shape) < surprise
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def _log_beta_ratio(a: Floats, b: Floats, x: Floats) -> Floats:
    """log I_x(a, b). Where x lies above the bulk the other tail converges, and is small enough to be subtracted from 1."""
    swap = x > (a + 1.0) / (a + b + 2.0)
    p, q, y = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, 1.0 - x, x)
    front = p * np.log(y) + q * np.log1p(-y) - np.log(p) - (_log_gamma(p) + _log_gamma(q) - _log_gamma(p + q))
    log = np.minimum(front + np.log(_fraction(p, q, y)), 0.0)
    ratio: Floats = np.where(swap, np.log(np.maximum(-np.expm1(log), _TINY)), log)
    return ratio


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    c = np.ones_like(x)
    d: Floats = 1.0 / _off_zero(1.0 - (a + b) * x / (a + 1.0))
    h: Floats = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _off_zero(1.0 + even * d)
        c = _off_zero(1.0 + even / c)
        h = h * d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / _off_zero(1.0 + odd * d)
        c = _off_zero(1.0 + odd / c)
        step = d * c
        h = h * step
        if np.abs(step - 1.0).max() < 1e-12:
            break
    return h


def _off_zero(number: Floats) -> Floats:
    away: Floats = np.where(np.abs(number) < _TINY, _TINY, number)
    return away


def _log_gamma(numbers: Floats) -> Floats:
    return np.fromiter((math.lgamma(n) for n in numbers.ravel().tolist()), np.float64, numbers.size).reshape(numbers.shape)
