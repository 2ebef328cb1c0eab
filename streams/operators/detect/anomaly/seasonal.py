"""The hour of the day, on working days and on weekends: how new is the distance to what is usual for this hour?

It speaks only where the hour tells something: where values lie nearer to what is usual for the hour than to the long mean.
Hours are those of UTC: only that they come back matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import level, nearest
from streams.operators.detect.anomaly.places import rows, where

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

LIMIT: Final = level.LIMIT
"""Scales that score 0.5."""
WEIGHT: Final = 0.5
"""Of a new distance to the usual of the hour, against a new level."""
DAYS: Final = 4
"""Days on which an hour must have been seen before it says anything."""
DAY_WEIGHT: Final = 0.2
"""Of the newest day in what is usual for an hour."""
GATE_RATIO: Final = 0.6
"""It speaks while the mean distance to the usual of the hour is below this share of that to the long mean."""
GATE_POINTS: Final = 50
"""And after so many points at hours that are known."""
NEAR_WEIGHT: Final = 0.002
"""Of the newest point in these two mean distances."""
LONG_WEIGHT: Final = 0.001
"""Of the newest point in the long mean."""

HOUR_NS: Final = 3_600_000_000_000
_HOURS: Final = 48
_EPOCH_WEEKDAY: Final = 3
"""1970-01-01 was a Thursday, the fourth day of the week."""
_FACTS: Final = 7
_ORIGIN, _SUM, _COUNT, _OFF_HOUR, _OFF_MEAN, _MEAN, _KNOWN = range(_FACTS)


def define(table: Table, width: int, options: Options) -> None:
    """What is usual for each hour, as distance from the first value; days it was seen; the hour at hand; and seven facts of a series."""
    del options
    table.define("anomaly_hours", np.float32, 0.0, width, _HOURS)
    table.define("anomaly_hour_days", np.uint8, 0, width, _HOURS)
    table.define("anomaly_hour", np.int64, -1, width)
    table.define("anomaly_hour_facts", np.float64, 0.0, width, _FACTS)
    nearest.define(table, "seasonal", width)


def bucket(hour: NDArray[np.int64]) -> NDArray[np.int64]:
    """0-23 on working days, 24-47 on weekends, of hours since 1970."""
    return hour % 24 + 24 * ((hour // 24 + _EPOCH_WEEKDAY) % 7 >= 5)


def surprise(table: Table, given: Given, options: Options) -> Floats:
    """Scales (m,); NaN in the warm-up, while the hour is new and while hours tell nothing."""
    cells, values = given.cells, given.values
    usual = table["anomaly_hours"].reshape(-1)
    days = table["anomaly_hour_days"].reshape(-1)
    current = table["anomaly_hour"].reshape(-1)
    facts = table["anomaly_hour_facts"].reshape(-1, _FACTS)
    known = rows(facts, given.at).T.copy()
    if given.number.min() == 0:
        first = given.number == 0
        known[_ORIGIN, first] = values[first]
    value = values - known[_ORIGIN]

    hour = given.at_ns // HOUR_NS
    before = rows(current, given.at).copy()
    ended = np.flatnonzero((before != hour) & (before >= 0) & (known[_COUNT] > 0))
    if len(ended):
        at = cells[ended] * _HOURS + bucket(before[ended])
        weight = np.maximum(DAY_WEIGHT, 1.0 / (days[at] + 1.0))
        mean = known[_SUM, ended] / known[_COUNT, ended]
        usual[at] += weight * (np.clip(mean, -1e38, 1e38) - usual[at])
        days[at] = np.minimum(days[at], 254) + 1
        known[_SUM, ended] = known[_COUNT, ended] = 0.0
    current[given.at] = hour
    known[_SUM] += value
    known[_COUNT] += 1.0

    out = np.full(len(cells), np.nan)
    at = cells * _HOURS + bucket(hour)
    those = np.flatnonzero(days[at] >= DAYS)
    if len(those):
        off = value[those] - usual[at[those]]
        known[_KNOWN, those] += 1.0
        weight = np.maximum(NEAR_WEIGHT, 1.0 / known[_KNOWN, those])
        known[_OFF_HOUR, those] += weight * (np.abs(off) - known[_OFF_HOUR, those])
        known[_OFF_MEAN, those] += weight * (np.abs(value[those] - known[_MEAN, those]) - known[_OFF_MEAN, those])
        least = np.maximum(level.LEAST * np.abs(values[those]), level.TINY)
        new = nearest.distance(table, "seasonal", where(cells[those]), cells[those], off, least)
        tells = (known[_KNOWN, those] > GATE_POINTS) & (known[_OFF_HOUR, those] < GATE_RATIO * known[_OFF_MEAN, those])
        out[those] = np.where(tells & (given.number[those] >= options.warm_up), WEIGHT * new, np.nan)
    known[_MEAN] += np.maximum(LONG_WEIGHT, 1.0 / (given.number + 1.0)) * (value - known[_MEAN])
    facts[given.at] = known.T
    return out
