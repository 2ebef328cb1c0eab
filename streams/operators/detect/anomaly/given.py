"""What a detector is given: the points of one call, what was usual for their series, and the way they took."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.places import Where
    from streams.operators.detect.anomaly.usual import Usual


class Given(NamedTuple):
    """m points of distinct series: places in the flattened table, values, times, and how many points each series had before.

    `at` is `cells`, as a slice where they are neighbours. `youngest` is the least `number`. `means` (len(means.WEIGHTS), m) are running
    means with the point in them, to be read only.
    """

    cells: NDArray[np.intp]
    at: Where
    values: NDArray[np.float64]
    at_ns: NDArray[np.int64]
    number: NDArray[np.int32]
    youngest: int
    usual: Usual
    means: NDArray[np.float64]
