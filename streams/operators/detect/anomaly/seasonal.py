"""The hour of the day: is the value usual for this time, by what the series did at this hour on the days before?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import tails

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.table import Table

LIMIT: Final = 9.0
"""Decades that score 0.5."""
HOURS: Final = 24
HOUR_NS: Final = 3_600_000_000_000
DAYS: Final = 3
"""Days on which an hour must have been seen before it says anything."""
DAY_WEIGHT: Final = 0.2
"""Of the newest day in what is usual for an hour."""
WINSOR: Final = 3.0
"""A value further off than so many usual distances is taken in as if it were this far."""
_LEAST: Final = 1e-9
_TINY: Final = 1e-140


def define(table: Table, width: int) -> None:
    """For each hour what is usual: mean of the days before, and mean distance from it; and the days; and the mean of the hour at hand."""
    table.define("anomaly_hours", np.float64, 0.0, width, HOURS, 2)
    table.define("anomaly_hour_days", np.uint8, 0, width, HOURS)
    table.define("anomaly_hour_now", np.float64, 0.0, width, 3)
    table.define("anomaly_hour", np.int64, -1, width)
    tails.define(table, "seasonal", width, 1)


def surprise(table: Table, given: Given, options: Options) -> NDArray[np.float64]:
    """Decades (m,); NaN in the warm-up and until the hour was seen on DAYS days."""
    cells, values = given.cells, given.values
    hours = table["anomaly_hours"].reshape(-1, HOURS, 2)
    days = table["anomaly_hour_days"].reshape(-1, HOURS)
    now = table["anomaly_hour_now"].reshape(-1, 3)
    current = table["anomaly_hour"].reshape(-1)

    hour = given.at_ns // HOUR_NS
    ended = np.flatnonzero((current[cells] != hour) & (current[cells] >= 0))
    if len(ended):
        _take_hour(hours, days, now, cells[ended], current[cells[ended]] % HOURS)
    current[cells] = hour

    which = hour % HOURS
    mean, off = hours[cells, which].T
    usual_off = np.maximum(off, np.maximum(_LEAST * np.abs(mean), _TINY))
    known = days[cells, which] >= DAYS
    away = np.where(known, values - mean, 0.0)
    ratio = np.minimum(np.abs(away) / usual_off, 1e12)
    sums = now[cells]
    within = np.where(known, mean + np.clip(away, -WINSOR * usual_off, WINSOR * usual_off), values)
    count = sums[:, 2] + 1.0
    sums[:, 0] += (within - sums[:, 0]) / count
    sums[:, 1] += (np.abs(within - np.where(known, mean, sums[:, 0])) - sums[:, 1]) / count
    sums[:, 2] = count
    now[cells] = sums

    decades = np.full(len(cells), np.nan)
    those = np.flatnonzero(known)
    if len(those):
        decades[those] = tails.surprise(table, "seasonal", cells[those], ratio[None, those])[0]
    return np.where(given.number >= options.warm_up, decades, np.nan)


def _take_hour(
    hours: NDArray[np.float64], days: NDArray[np.uint8], now: NDArray[np.float64], cells: NDArray[np.intp], which: NDArray[np.int64]
) -> None:
    """An hour is over: its mean and mean distance join those of the days before."""
    old = hours[cells, which]
    seen = days[cells, which]
    weight = np.maximum(DAY_WEIGHT, 1.0 / (seen + 1.0))[:, None]
    hours[cells, which] = old + weight * (now[cells, :2] - old)
    days[cells, which] = np.minimum(seen, 254) + 1
    now[cells] = 0.0
