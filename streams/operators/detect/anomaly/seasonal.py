"""The hour of the day, on working days and on weekends: how new is the distance to what is usual for this hour?

It speaks only where the hour tells something: where values lie nearer to what is usual for the hour than to the long mean.
Hours are those of UTC: only that they come back matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.anomaly import level, nearest
from streams.operators.detect.anomaly.places import keep, planes, rows, where

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.given import Given
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

LIMIT: Final = level.LIMIT
"""Scales that score 0.5, weighted."""
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
_FACTS: Final = 6
_ORIGIN, _SUM, _COUNT, _OFF_HOUR, _OFF_MEAN, _MEAN = range(_FACTS)


def define(table: Table, width: int) -> None:
    """What is usual for each hour, as distance from the first value; days it was seen; the hour at hand; how many points came at hours
    that are known; and six facts of a series."""
    table.define("anomaly_hours", np.float32, 0.0, width, _HOURS)
    table.define("anomaly_hour_days", np.uint8, 0, width, _HOURS)
    table.define("anomaly_hour", np.int32, -1, width)
    table.define("anomaly_hour_known", np.int32, 0, width)
    table.define_planes("anomaly_hour_facts", np.float64, 0.0, _FACTS, width)
    nearest.define(table, "seasonal", width)


def bucket(hour: NDArray[np.int32]) -> NDArray[np.int32]:
    """0-23 on working days, 24-47 on weekends, of hours since 1970."""
    return hour % 24 + 24 * ((hour // 24 + _EPOCH_WEEKDAY) % 7 >= 5)


def size(table: Table, given: Given, closely: NDArray[np.bool_]) -> Floats:
    """Scales by LIMIT, (m,); 0 for what is well known, unless it is to be looked at `closely` (m,), while the hour is new and while hours
    tell nothing."""
    cells, values, at = given.cells, given.values, given.at
    days = table["anomaly_hour_days"].reshape(-1)
    current = table["anomaly_hour"].reshape(-1)
    facts: Floats = planes(table, "anomaly_hour_facts", at)
    if given.youngest == 0:
        first = given.number == 0
        facts[_ORIGIN, first] = values[first]
    value = values - facts[_ORIGIN]

    hour = _hours(given.at_ns)
    changed = rows(current, at) != hour
    if changed.any():
        ended = np.flatnonzero(changed)
        _end(table, cells[ended], rows(current, at)[ended], facts, ended)
        current[at] = hour
    facts[_SUM] += value
    facts[_COUNT] += 1.0

    out = np.zeros(len(cells))
    now = cells * _HOURS + bucket(hour)
    those = np.flatnonzero(days.take(now, mode="clip") >= DAYS)
    if len(those):
        out[those] = _compared(table, given, facts, value, now, those, closely)
    value -= facts[_MEAN]
    young = given.youngest < 1.0 / LONG_WEIGHT
    value *= np.maximum(LONG_WEIGHT, 1.0 / (given.number + 1.0)) if young else LONG_WEIGHT
    facts[_MEAN] += value
    keep(table, "anomaly_hour_facts", at, facts)
    return out


def _hours(at_ns: NDArray[np.int64]) -> NDArray[np.int32]:
    """Hours since 1970, one alone where all are the same."""
    ends = np.array([at_ns.min(), at_ns.max()]) // HOUR_NS
    return (ends[:1] if ends[0] == ends[1] else at_ns // HOUR_NS).astype(np.int32)


def _end(table: Table, cells: NDArray[np.intp], before: NDArray[np.int32], facts: Floats, ended: NDArray[np.intp]) -> None:
    """Takes the hours `before` (k,) that ended into what is usual for them; `facts` are of all points, of which those at `ended` (k,)."""
    usual = table["anomaly_hours"].reshape(-1)
    days = table["anomaly_hour_days"].reshape(-1)
    some = np.flatnonzero((before >= 0) & (facts[_COUNT, ended] > 0))
    cells, before, ended = cells[some], before[some], ended[some]
    at = cells * _HOURS + bucket(before)
    weight = np.maximum(DAY_WEIGHT, 1.0 / (days[at] + 1.0))
    mean = facts[_SUM, ended] / facts[_COUNT, ended]
    usual[at] += weight * (np.clip(mean, -1e38, 1e38) - usual[at])
    days[at] = np.minimum(days[at], 254) + 1
    facts[_SUM, ended] = facts[_COUNT, ended] = 0.0


def _compared(
    table: Table,
    given: Given,
    facts: Floats,
    value: Floats,
    now: NDArray[np.intp],
    those: NDArray[np.intp],
    closely: NDArray[np.bool_],
) -> Floats:
    """Sizes (k,) of the points at `those` (k,), whose hour is known, which is `now` (m,)."""
    cells = given.cells[those]
    known = table["anomaly_hour_known"].reshape(-1)
    before = known[cells]
    known[cells] = before + 1
    off = value[those] - table["anomaly_hours"].reshape(-1)[now[those]]
    weight = np.maximum(NEAR_WEIGHT, 1.0 / (before + 1.0))
    off_hour, off_mean = facts[_OFF_HOUR, those], facts[_OFF_MEAN, those]
    off_hour += weight * (np.abs(off) - off_hour)
    off_mean += weight * (np.abs(value[those] - facts[_MEAN, those]) - off_mean)
    facts[_OFF_HOUR, those], facts[_OFF_MEAN, those] = off_hour, off_mean
    new = nearest.distance(table, "seasonal", where(cells), cells, off, given.values[those], before, closely[those])
    tells = (before >= GATE_POINTS) & (off_hour < GATE_RATIO * off_mean)
    new *= tells * (WEIGHT / LIMIT)
    return new
