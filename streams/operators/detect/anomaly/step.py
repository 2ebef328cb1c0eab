"""Step of the level: a two-sided CUSUM of how far values lie from the long mean, which small but lasting changes fill up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly.places import keep, planes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.table import Table

LIMIT: Final = 6.0
"""Decades that score 0.5."""
SLACK_SIGMAS: Final = 0.5
"""Distance that adds nothing: half of the step of one standard deviation that is looked for (Page's rule)."""
MOST_SIGMAS: Final = 8.0
"""Most that one point adds."""
FIRST: Final = 2.0
"""In limits: the first move of a series that never moved."""
FULL: Final = 400.0
"""Sum at which it is full."""
KINDS: Final = 1


def define(table: Table, width: int) -> None:
    """The sums upwards and downwards."""
    table.define_planes("anomaly_cusum", np.float32, 0.0, 2, width)


def statistics(table: Table, given: Given, out: NDArray[np.float32]) -> None:
    """Puts what the tails are asked about into `out` (KINDS, m): the larger sum. One of 8 is what one standard deviation over 16 points
    brings, which is the unit."""
    sums: NDArray[np.float32] = planes(table, "anomaly_cusum", given.at)
    off = np.minimum(np.maximum(given.usual.distance[-1], -MOST_SIGMAS), MOST_SIGMAS).astype(np.float32)
    sums[0] += off
    sums[1] -= off
    sums -= np.float32(SLACK_SIGMAS)
    np.maximum(sums, np.float32(0.0), out=sums)
    np.minimum(sums, np.float32(FULL), out=sums)
    np.maximum(sums[0], sums[1], out=out[0])
    out[0] *= np.float32(1.0 / MOST_SIGMAS)
    keep(table, "anomaly_cusum", given.at, sums)


def size(given: Given, decades: NDArray[np.float32]) -> NDArray[np.float32]:
    """The surprise by LIMIT, (m,)."""
    found: NDArray[np.float32] = decades[0] * np.float32(1.0 / LIMIT)
    # where nothing ever varied, whatever moves is a step
    if given.usual.never.any():
        found[given.usual.never & (given.usual.distance[-1] != 0.0)] = FIRST
    return found
