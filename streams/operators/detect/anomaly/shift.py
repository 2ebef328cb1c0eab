"""Shift of the short-window mean and of the variance: is the last dozen of points unlike the last hundred?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import tails

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.table import Table

LIMIT: Final = 8.0
"""Decades that score 0.5."""
MOST_RATIO: Final = 1e6
"""Of standard deviations that is told apart: a series that falls silent must not grow ever stranger."""
KINDS: Final = 2


def statistics(table: Table, given: Given, out: NDArray[np.float32]) -> None:
    """Puts what the tails are asked about into `out` (KINDS, m): how far the mean moved, and how much wider or narrower it varies."""
    del table
    usual = given.usual
    off = np.abs(usual.moved)
    off /= usual.sigma
    np.minimum(off, tails.MOST, out=out[0], casting="same_kind")
    ratio = usual.sigma_after / usual.sigma
    np.maximum(ratio, 1e-3, out=ratio)
    np.maximum(ratio, 1.0 / ratio, out=ratio)
    np.minimum(ratio, MOST_RATIO, out=ratio)
    np.subtract(ratio, 1.0, out=out[1], casting="same_kind")


def size(given: Given, decades: NDArray[np.float32]) -> NDArray[np.float32]:
    """The larger of mean and variance by LIMIT, (m,)."""
    del given
    larger: NDArray[np.float32] = np.maximum(decades[0], decades[1])
    larger *= np.float32(1.0 / LIMIT)
    return larger
