"""Step of the level: a two-sided CUSUM of how far values lie from the long mean, which small but lasting changes fill up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import tails, usual
from streams.operators.detect.anomaly.places import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.table import Table

LIMIT: Final = 6.0
"""Decades that score 0.5."""
SLACK_SIGMAS: Final = 0.5
"""Distance that adds nothing: half of the step of one standard deviation that is looked for (Page's rule)."""
MOST_SIGMAS: Final = 8.0
"""Most that one point adds."""
FIRST: Final = 2.0 * LIMIT
"""Decades of the first move of a series that never moved."""
FULL: Final = 400.0
"""Sum at which it is full."""


def define(table: Table, width: int, options: Options) -> None:
    """The sums upwards and downwards."""
    del options
    table.define("anomaly_cusum", np.float32, 0.0, width, 2)
    tails.define(table, "step", width, 1)


def surprise(table: Table, given: Given, options: Options) -> NDArray[np.float64]:
    """Decades (m,); NaN in the warm-up."""
    sums = table["anomaly_cusum"].reshape(-1, 2)
    off = np.minimum(np.maximum(given.usual.distance[-1], -MOST_SIGMAS), MOST_SIGMAS)
    now = rows(sums, given.at).T + np.stack((off - SLACK_SIGMAS, -off - SLACK_SIGMAS))
    now = np.minimum(np.maximum(now, 0.0), FULL)
    sums[given.at] = now.T
    # a sum of 8 is what one standard deviation over 16 points brings: the unit of the tail
    decades = tails.surprise(table, "step", given, np.maximum(now[0], now[1])[None] / MOST_SIGMAS)[0]
    # where nothing ever varied, whatever moves is a step
    never = given.usual.sigma[-1] <= np.maximum(usual.LEAST_SIGMA * np.abs(given.usual.mean[-1]), usual.TINY)
    decades[never & (off != 0.0)] = FIRST
    return np.where(given.number >= options.warm_up, decades, np.nan)
