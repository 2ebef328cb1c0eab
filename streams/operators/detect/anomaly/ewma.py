"""Distance from the running mean at three time constants, each measured against how far off this series usually is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import tails

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.table import Table

LIMIT: Final = 8.0
"""Decades that score 0.5: about 40 standard deviations where that was never seen in 2,000 points."""
KINDS: Final = 3


def statistics(table: Table, given: Given, out: NDArray[np.float32]) -> None:
    """Puts what the tails are asked about into `out` (KINDS, m)."""
    del table
    off = np.abs(given.usual.distance)
    np.minimum(off, tails.MOST, out=out, casting="same_kind")


def size(given: Given, decades: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of the three by LIMIT, (m,)."""
    del given
    together: NDArray[np.float32] = decades[0] + decades[1]
    together += decades[2]
    together *= np.float32(1.0 / (KINDS * LIMIT))
    return together
