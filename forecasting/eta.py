"""When a limit is crossed, and how likely within the horizon: read from simulated futures that nothing has clamped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Crossing:
    """Share of futures that reach the limit within the horizon, and the quantiles of when.

    Times are in steps after the last point, with fractions. A quantile that lies among futures which never cross is None: "later
    than the horizon" is not a number.
    """

    probability: float
    p10_steps: float | None
    p50_steps: float | None
    p90_steps: float | None


def crossing(paths: NDArray[np.float64], last: float, limit: float) -> Crossing:
    """First time each of `paths`, shape (paths, horizon), is at or above `limit`, starting from `last` at step 0."""
    above = paths >= limit
    crosses = above.any(axis=1)
    first = above.argmax(axis=1)
    rows = np.arange(paths.shape[0])
    after = paths[rows, first]
    before = np.where(first > 0, paths[rows, np.maximum(first - 1, 0)], last)
    rise = after - before
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.where(rise > 0, np.clip((limit - before) / rise, 0.0, 1.0), 1.0)
    steps = np.sort(np.where(crosses, first + part, np.inf))
    return Crossing(float(crosses.mean()), *(_quantile(steps, share) for share in (0.1, 0.5, 0.9)))


def _quantile(ordered: NDArray[np.float64], share: float) -> float | None:
    value = float(ordered[min(ordered.size - 1, int(np.ceil(share * ordered.size)) - 1)])
    return value if np.isfinite(value) else None
