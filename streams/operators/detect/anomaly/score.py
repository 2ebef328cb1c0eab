"""Turns surprise into the score that all detectors share: 0 to 1, and 0.5 exactly at the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def score(surprise: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """`surprise` in decades, 0 or more, any shape; NaN stays NaN. ValueError where the limit is not above 0."""
    if not limit > 0:
        raise ValueError(f"a limit of {limit} decades: it must lie above 0")
    return surprise / (surprise + limit)
