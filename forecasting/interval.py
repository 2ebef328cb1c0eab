"""How wide the band is: what a model expects of itself, corrected by how far its past forecasts really were off (conformal)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecasting.models import Trial

LEVEL: Final = 0.9
"""Nominal coverage: p05 to p95."""

_SIGMAS: Final = 1.645
_OWN_WEIGHT: Final = 2.0
"""What a model expects of itself counts as much as so many independent errors of its past."""

_WIDENING: Final = 1.5
"""Few errors do not show their tail: of m independent ones the band is widened by this share of 1 / m (measured: bench/forecast.py)."""

_LEAST_ERRORS: Final = 4
_NARROWEST: Final = 0.05
"""Past errors all to one side say little of the other: it keeps this share of what the model expects."""


@dataclass(frozen=True, slots=True)
class Margins:
    """`below` <= 0 <= `above`, (n, horizon): added to the mean they are the band. `level` (n,) is the coverage that the past errors
    prove, less than LEVEL where there are too few for its tails."""

    below: NDArray[np.float64]
    above: NDArray[np.float64]
    level: NDArray[np.float64]


def margins(tested: NDArray[np.float64], spread: NDArray[np.float64], trial: Trial) -> Margins:
    """Bands around forecasts whose models said `tested` (n, o, k) at the origins of `trial` and expect `spread` (n, horizon)."""
    counts = trial.known.sum(axis=1)
    enough = counts >= _LEAST_ERRORS
    # The farthest step with errors enough speaks for all beyond it. Steps are the same for all rows, so it is the last one that counts.
    farthest = np.where(enough.any(axis=1), enough.shape[1] - 1 - np.argmax(enough[:, ::-1], axis=1), 0)
    rows = np.arange(len(spread))
    level = np.where(enough.any(axis=1), np.minimum(LEVEL, 1 - 2 / (counts[rows, farthest] + 1)), 0.0)
    own = np.maximum(_SIGMAS * spread, 1e-12)
    errors = np.sort(np.where(trial.known, trial.actual - tested, np.inf), axis=1)
    independent = _independent(trial, counts)
    weight = np.where(enough, independent / (independent + _OWN_WEIGHT), 0.0)
    widened = 1 + _WIDENING / independent
    expected = own[:, trial.steps - 1]
    sides = []
    for sign, share in ((-1.0, (1 - LEVEL) / 2), (1.0, (1 + LEVEL) / 2)):
        off = np.where(enough, sign * _quantile(errors, counts, share), expected) * widened
        correction = weight * np.log(np.maximum(off / expected, _NARROWEST))
        correction = np.where(enough, correction, np.take_along_axis(correction, farthest[:, None], axis=1))
        sides.append(np.maximum.accumulate(own * np.exp(_between(correction, trial.steps, own.shape[1])), axis=1))
    return Margins(-sides[0], sides[1], level)


def _independent(trial: Trial, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, k): errors h steps ahead from origins closer than h overlap; about two an h of distance tell something new."""
    first = np.where(trial.known, trial.at[:, :, None], np.iinfo(np.int64).max).min(axis=1)
    last = np.where(trial.known, trial.at[:, :, None], 0).max(axis=1)
    distance = np.where(counts > 0, last - first, 0)
    out: NDArray[np.float64] = np.maximum(1.0, np.minimum(counts, 1 + 2.0 * distance / trial.steps))
    return out


def _quantile(ordered: NDArray[np.float64], counts: NDArray[np.int64], share: float) -> NDArray[np.float64]:
    """Of the first `counts` (n, k) values of `ordered` (n, o, k) along its middle axis, (n, k)."""
    place = share * np.maximum(0, counts - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(0, counts - 1))
    at_low = np.take_along_axis(ordered, low[:, None], axis=1)[:, 0]
    at_high = np.take_along_axis(ordered, high[:, None], axis=1)[:, 0]
    with np.errstate(invalid="ignore"):  # a row without errors holds infinities, which nobody reads
        return at_low + (at_high - at_low) * (place - low)


def _between(values: NDArray[np.float64], steps: NDArray[np.int64], horizon: int) -> NDArray[np.float64]:
    """`values` (n, k) at `steps` as (n, horizon), straight in between; the first and last hold beyond."""
    each = np.arange(1, horizon + 1)
    right = np.clip(np.searchsorted(steps, each), 0, steps.size - 1)
    left = np.maximum(0, right - 1)
    wide = np.maximum(1, steps[right] - steps[left])
    part = np.clip((each - steps[left]) / wide, 0.0, 1.0)
    out: NDArray[np.float64] = values[:, left] * (1 - part) + values[:, right] * part
    return out
