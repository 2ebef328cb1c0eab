"""Gathers samples into points: the mean of what a series said since its last point, so that any cadence is judged alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streams.operators.detect.anomaly.places import rows, where

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.table import Table

MOST: Final = 1e150
"""What is larger is no measurement: its square is not a number a computer has."""

_SPACING_WEIGHT: Final = 0.1
"""Weight of the newest distance between two points in the series' usual distance."""


class Points(NamedTuple):
    """m points, one a series: places in the flattened table, values, times, and how many points the series had before this one."""

    cells: NDArray[np.intp]
    values: NDArray[np.float64]
    at_ns: NDArray[np.int64]
    number: NDArray[np.int32]


def define(table: Table, width: int) -> None:
    """Columns (capacity, width): mean and number of the samples since the last point, times of both, distance, and points so far."""
    table.define("anomaly_mean", np.float64, 0.0, width)
    table.define("anomaly_samples", np.int32, 0, width)
    table.define("anomaly_seen_ns", np.int64, 0, width)
    table.define("anomaly_point_ns", np.int64, 0, width)
    table.define("anomaly_spacing_ns", np.float32, 0.0, width)
    table.define("anomaly_points", np.int32, 0, width)


def take(
    table: Table, cells: NDArray[np.intp], at_ns: NDArray[np.int64], values: NDArray[np.float64], options: Options
) -> tuple[NDArray[np.bool_], Points]:
    """Takes `values` (k,) of the distinct places `cells` (k,) in; returns which of them count (k,), and the points complete with them.

    Not counted are NaN, infinities, what is beyond MOST, and what is not after the last sample of its series: late or a duplicate.
    A series that starts again has fresh state in every column that is named `anomaly_*`.
    """
    seen = table["anomaly_seen_ns"].reshape(-1)
    samples = table["anomaly_samples"].reshape(-1)
    point_ns = table["anomaly_point_ns"].reshape(-1)
    spacing = table["anomaly_spacing_ns"].reshape(-1)
    points = table["anomaly_points"].reshape(-1)
    mean = table["anomaly_mean"].reshape(-1)
    at = where(cells)
    least_ns = options.point_seconds * 1e9

    counted = np.abs(values) <= MOST  # NaN is not
    silent = at_ns - rows(seen, at)
    usual = (
        bool(counted.all())
        and int(silent.min()) > 0
        and int(silent.max()) <= options.forget_gap_points * least_ns
        and int(rows(points, at).min()) > 0
    )
    first = np.zeros(1, np.bool_)
    if not usual:
        fresh = rows(points, at) == 0
        lost = np.abs(silent) > options.forget_gap_points * np.maximum(rows(spacing, at), least_ns)
        first = fresh | lost
        counted &= (silent > 0) | first
        lost &= ~fresh
        place = np.flatnonzero(counted)
        cells, values, at_ns, first, lost = cells[place], values[place], at_ns[place], first[place], lost[place]
        at = where(cells)
        if lost.any():
            table.freshen("anomaly_", cells[lost])

    seen[at] = at_ns
    before = rows(samples, at)
    passed = at_ns - rows(point_ns, at)
    due = (passed >= least_ns) | first
    count = before + 1
    if before.any():
        sofar = rows(mean, at) * (before > 0)
        values = sofar + (values - sofar) / count
    if not due.all():
        mean[at] = values
        samples[at] = count * ~due
        cells, values, at_ns, passed = cells[due], values[due], at_ns[due], passed[due]
        at = where(cells)
    else:
        samples[at] = 0
    number = rows(points, at).copy()
    points[at] = number + 1
    point_ns[at] = at_ns
    apart = passed.astype(np.float32)
    weight: NDArray[np.float32] | np.float32 = np.float32(_SPACING_WEIGHT)
    if len(number) and number.min() <= 1:
        apart *= number > 0
        weight = np.where(number <= 1, np.float32(1.0), weight)
    apart -= rows(spacing, at)
    apart *= weight
    spacing[at] = rows(spacing, at) + apart
    return counted, Points(cells, values, at_ns, number)
