"""The band that is shown: median and the middle 90 % of simulated futures, within what is physically possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def band(
    paths: NDArray[np.float64], low: float | None, high: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(p05, p50, p95), each shape (horizon,), of `paths`, shape (paths, horizon); clamped to [low, high]."""
    p05, p50, p95 = np.quantile(paths, (0.05, 0.5, 0.95), axis=0)
    return _clamp(p05, low, high), _clamp(p50, low, high), _clamp(p95, low, high)


def _clamp(values: NDArray[np.float64], low: float | None, high: float | None) -> NDArray[np.float64]:
    return values if low is None and high is None else np.clip(values, low, high)
