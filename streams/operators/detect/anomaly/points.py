"""Gathers samples into points: the mean of what a series said since its last point, so that any cadence is judged alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.anomaly.options import Options
    from streams.operators.detect.table import Table

MOST: Final = 1e150
"""What is larger is no measurement: its square is not a number a computer has."""

_SPACING_WEIGHT: Final = 0.1
"""Weight of the newest distance between two points in the series' usual distance."""


class Points(NamedTuple):
    """m points, one a series. `place` indexes the flattened (n, W) input, `cells` the flattened (capacity, W) table."""

    place: NDArray[np.intp]
    cells: NDArray[np.intp]
    values: NDArray[np.float64]
    at_ns: NDArray[np.int64]
    number: NDArray[np.int64]
    """How many points the series had before this one."""


def define(table: Table, width: int) -> None:
    """Columns (capacity, width): mean and number of the samples since the last point, times of both, distance, and points so far."""
    table.define("anomaly_mean", np.float64, 0.0, width)
    table.define("anomaly_samples", np.int32, 0, width)
    table.define("anomaly_seen_ns", np.int64, 0, width)
    table.define("anomaly_point_ns", np.int64, 0, width)
    table.define("anomaly_spacing_ns", np.float32, 0.0, width)
    table.define("anomaly_points", np.int32, 0, width)


def take(
    table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: NDArray[np.float64], options: Options
) -> tuple[NDArray[np.bool_], Points]:
    """Takes `values` (n, W) in; returns which of them count (n, W), and the points that are complete with them.

    Not counted are NaN, infinities, what is beyond MOST, and what is not after the last sample of its series: late or a duplicate.
    A series that starts again has fresh state in every column that is named `anomaly_*`.
    """
    width = values.shape[1]
    cells = (rows[:, None] * width + np.arange(width)).ravel()
    flat = values.ravel()
    when = np.repeat(at_ns, width)
    seen = table["anomaly_seen_ns"].reshape(-1)
    samples = table["anomaly_samples"].reshape(-1)
    point_ns = table["anomaly_point_ns"].reshape(-1)
    spacing = table["anomaly_spacing_ns"].reshape(-1)
    points = table["anomaly_points"].reshape(-1)
    mean = table["anomaly_mean"].reshape(-1)

    last = seen[cells]
    silent = when - last
    known = np.abs(flat) <= MOST  # NaN is not
    fresh = points[cells] == 0
    least_ns = options.point_seconds * 1e9
    forget_ns = options.forget_gap_points * np.maximum(spacing[cells], least_ns)
    lost = known & ~fresh & (np.abs(silent) > forget_ns)
    counted = known & ((silent > 0) | fresh | lost)
    place = np.flatnonzero(counted)
    if len(place) < len(cells):
        cells, flat, when, fresh, lost = cells[place], flat[place], when[place], fresh[place], lost[place]

    if lost.any():
        table.freshen("anomaly_", cells[lost])
    seen[cells] = when
    first = fresh | lost
    count = np.where(first, 1, samples[cells] + 1)
    before = np.where(count == 1, 0.0, mean[cells])
    average = before + (flat - before) / count
    passed = when - point_ns[cells]
    due = first | (passed >= least_ns)
    samples[cells] = np.where(due, 0, count)
    mean[cells] = average

    ready = cells[due]
    number = np.where(lost[due], 0, points[ready]).astype(np.int64)
    points[ready] = number + 1
    point_ns[ready] = when[due]
    apart = np.where(number == 0, 0.0, passed[due])
    old = np.where(number <= 1, apart, spacing[ready])
    spacing[ready] = old + _SPACING_WEIGHT * (apart - old)
    return counted.reshape(values.shape), Points(place[due], ready, average[due], when[due], number)
