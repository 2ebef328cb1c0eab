"""Whether the metrics of a device still go together: the part of its standardised vector outside the directions it usually varies in.

A card whose power, clock and temperature each lie where they often lie may still have the wrong temperature for its power. Mean, spread
and covariance are the device's own, with forgetting (one covariance for a model would make what is found depend on the order in which
nodes are read); its directions are worked out anew every so many points. The energy that is left over is judged by its own past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

SIGMA_FLOOR_RATIO: Final = 0.01
"""Least standard deviation of a metric as a share of its mean: readings are quantised."""
MOST_SIGMAS: Final = 8.0
"""A metric counts for at most so many standard deviations."""
LEAST_VARIANCE: Final = 1e-6
"""Of a direction that is kept, in squared standard deviations: what never varied has no direction."""
LEAST_ENERGY: Final = 1e-4
LEAST_SPREAD: Final = 0.5
"""Of the logarithm of the energy."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """`memory_points`: points that a value counts for. `warm_up_points` before there is a score. `renew_points`: between two looks at
    the directions. `kept_ratio`: share of the variance that they hold. `limit_sigmas`: of the logarithm of the energy, scores 0.5."""

    memory_points: int = 720
    warm_up_points: int = 360
    renew_points: int = 60
    kept_ratio: float = 0.9
    limit_sigmas: float = 4.0
    max_age_seconds: float = 60.0


class Odd(NamedTuple):
    """(n,) each: score 0-1, NaN while too little is known or nothing was said of late; left-over energy of the last point, and the most
    that was to be expected (numbers without a unit)."""

    score: Floats
    energy: Floats
    high: Floats


_COUNT, _AT_NS, _SCORE, _ENERGY, _HIGH, _LOG_MEAN, _LOG_VARIANCE = range(7)


def define(table: Table, width: int) -> None:
    """Columns for vectors of `width` metrics: 8 width² + 16 width bytes, 0.8 KiB for eight metrics."""
    table.define("residual_usual", np.float64, 0.0, 2, width)
    table.define("residual_covariance", np.float32, 0.0, width, width)
    table.define("residual_kept", np.float32, 0.0, width, width)
    table.define("residual", np.float64, np.nan, 7)


def score(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: Floats, options: Residuals) -> Odd:
    """Takes points (n, W) of distinct rows in. One that lacks a metric says nothing: nothing is put in its place."""
    whole = ~np.isnan(values).any(axis=1)
    if whole.any():
        _point(table, rows[whole], at_ns[whole], values[whole], options)
    state = table["residual"][rows]
    fresh = at_ns - state[:, _AT_NS] <= options.max_age_seconds * 1e9
    return Odd(np.where(fresh, state[:, _SCORE], np.nan), state[:, _ENERGY], state[:, _HIGH])


def _point(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], x: Floats, options: Residuals) -> None:
    state = table["residual"][rows]
    count = np.nan_to_num(state[:, _COUNT])
    usual = table["residual_usual"][rows]
    mean, variance = usual[:, 0], usual[:, 1]
    weight = np.maximum(1.0 / (count + 1.0), 1.0 / options.memory_points)
    sigma = np.maximum(np.sqrt(variance), np.maximum(SIGMA_FLOOR_RATIO * np.abs(mean), 1e-300))
    first = count[:, None] == 0
    z = np.where(first, 0.0, np.clip(np.where(first, 0.0, x - mean) / sigma, -MOST_SIGMAS, MOST_SIGMAS))
    # sums over the kept directions term by term: no sum may depend on how many devices are looked at together
    left = z - _times(table["residual_kept"][rows], z)
    energy = np.square(left).sum(axis=1)

    log = np.log(energy + LEAST_ENERGY)
    log_mean, log_variance = np.nan_to_num(state[:, _LOG_MEAN]), np.nan_to_num(state[:, _LOG_VARIANCE])
    spread = np.maximum(np.sqrt(log_variance), LEAST_SPREAD)
    surprise = (log - log_mean) / spread
    warm = count >= options.warm_up_points
    state[:, _SCORE] = np.where(warm, np.maximum(surprise, 0.0) / (np.maximum(surprise, 0.0) + options.limit_sigmas), np.nan)
    state[:, _ENERGY] = energy
    state[:, _HIGH] = np.exp(log_mean + options.limit_sigmas * spread)
    # energies say nothing before there are directions; and what is odd teaches no more than what is just not
    most = options.limit_sigmas
    since = count - options.renew_points
    learn = np.where(since >= 0, np.maximum(1.0 / (np.maximum(since, 0.0) + 1.0), 1.0 / options.memory_points), 0.0)
    step = learn * np.where(since > options.renew_points, np.clip(surprise, -most, most) * spread, log - log_mean)
    state[:, _LOG_MEAN] = log_mean + step
    state[:, _LOG_VARIANCE] = (1.0 - learn) * (log_variance + step * (log - log_mean).clip(-most * spread, most * spread))
    state[:, _AT_NS] = at_ns
    state[:, _COUNT] = count + 1.0
    table["residual"][rows] = state

    delta = np.where(first, x - mean, z * sigma)
    usual[:, 0] = mean + weight[:, None] * delta
    usual[:, 1] = np.where(first, 0.0, (1.0 - weight[:, None]) * (variance + weight[:, None] * np.square(delta)))
    table["residual_usual"][rows] = usual
    covariance = table["residual_covariance"][rows]
    covariance += weight[:, None, None] * (z[:, :, None] * z[:, None, :] - covariance)
    table["residual_covariance"][rows] = covariance
    renew = (count + 1.0) % options.renew_points == 0
    if renew.any():
        table["residual_kept"][rows[renew]] = _kept(covariance[renew], options.kept_ratio)


def _kept(covariance: NDArray[np.float32], ratio: float) -> Floats:
    """Projections (n, W, W) onto the fewest directions that hold `ratio` of the variance; at least one is left out."""
    size, direction = np.linalg.eigh(covariance.astype(np.float64))
    share = np.cumsum(size[:, ::-1], axis=1) / np.maximum(size.sum(axis=1, keepdims=True), 1e-12)
    before = np.concatenate((np.zeros((len(size), 1)), share[:, :-1]), axis=1)
    keep = (before < ratio)[:, ::-1] & (size > LEAST_VARIANCE)
    keep[:, 0] = False
    kept = direction * keep[:, None, :]
    projection = np.zeros(covariance.shape)
    for d in range(kept.shape[2]):
        projection += kept[:, :, None, d] * kept[:, None, :, d]
    return projection


def _times(matrix: NDArray[np.float32], vector: Floats) -> Floats:
    product = np.zeros(vector.shape)
    for d in range(vector.shape[1]):
        product += matrix[:, :, d] * vector[:, d, None]
    return product
