"""What a detector is given: the points of one call, and what was usual for their series."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.usual import Usual


class Given(NamedTuple):
    """m points of distinct series: places in the flattened table, values, times, and how many points each series had before."""

    cells: NDArray[np.intp]
    values: NDArray[np.float64]
    at_ns: NDArray[np.int64]
    number: NDArray[np.int64]
    usual: Usual
