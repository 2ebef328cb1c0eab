"""What lies in a sure interval is known without a search: the same values are kept as with one, and what is not told is small."""

import numpy as np
from numpy.typing import NDArray

from streams.operators.detect.anomaly import nearest
from streams.operators.detect.table import Table

Floats = NDArray[np.float64]
SERIES, POINTS = 6, 900


def distances(values: Floats, closely: bool) -> tuple[Floats, Table]:
    table = Table()
    nearest.define(table, "x", 1)
    cells = np.array([table.new_row() for _ in range(SERIES)], np.intp)
    asked = np.full(SERIES, closely)
    found = [
        nearest.distance(table, "x", slice(0, SERIES), cells, value, value, np.full(SERIES, n, np.int32), asked)
        for n, value in enumerate(values)
    ]
    return np.stack(found), table


def test_what_is_sure_is_near_and_nothing_else_is_taken_for_it() -> None:
    random = np.random.default_rng(3)
    values = random.normal(50.0, 1.0, (POINTS, SERIES)) + 4.0 * np.sin(np.arange(POINTS) / 40.0)[:, None]
    values[800] += 60.0
    quick, table = distances(values, False)
    exact, _ = distances(values, True)
    skipped = (quick == 0.0) & (exact > 0.0)
    assert skipped[400:].mean() > 0.2
    assert exact[skipped].max() <= nearest.KNOWN
    assert (quick[800] > nearest.KNOWN).all()
    low, high = table["anomaly_x_sure"].reshape(2, -1)[:, :SERIES]
    assert (high - low < 40.0).all()


def test_a_series_that_jumps_between_two_levels_is_not_sure_of_what_lies_between() -> None:
    values = np.where(np.arange(POINTS) % 2, 10.0, 90.0)[:, None] + np.random.default_rng(4).normal(0.0, 0.5, (POINTS, SERIES))
    values[700] = 50.0
    quick, _ = distances(values, False)
    assert (quick[700] > 0.0).all()
