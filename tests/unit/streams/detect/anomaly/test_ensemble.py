"""The anomaly ensemble as `samples.step` calls it: many series, any cadence, whatever a device says."""

import numpy as np
import pytest
from numpy.typing import NDArray

from streams.operators.detect.anomaly import ensemble
from streams.operators.detect.anomaly.ensemble import Options, Scores
from streams.operators.detect.table import Table

SECOND = 1_000_000_000
STEP = 10 * SECOND


def fleet(rows: int, width: int = 1, options: Options | None = None) -> tuple[Table, NDArray[np.intp]]:
    table = Table()
    ensemble.define(table, width, options or Options())
    return table, np.array([table.new_row() for _ in range(rows)], np.intp)


def run(values: NDArray[np.float64], options: Options | None = None, step_ns: int = STEP) -> Scores:
    """Scores of one series, (n,) each."""
    asked = options or Options()
    table, rows = fleet(1, 1, asked)
    found = [ensemble.score(table, rows, np.array([(i + 1) * step_ns]), np.array([[v]]), asked) for i, v in enumerate(values)]
    return Scores(*(np.array([getattr(s, name)[0, 0] for s in found]) for name in Scores._fields))


def noisy(n: int, seed: int = 1) -> NDArray[np.float64]:
    return 50.0 + np.random.default_rng(seed).normal(0.0, 1.0, n)


def test_nothing_is_said_in_the_warm_up() -> None:
    found = run(noisy(260))
    assert np.isnan(found.score[:150]).all()
    assert not np.isnan(found.score[150:]).any()


@pytest.mark.parametrize("level", [0.0, 70.0, -3.0, 1e12])
def test_a_constant_series_that_changes_is_an_anomaly(level: float) -> None:
    found = run(np.array([level] * 300 + [level * 1.1 + (level == 0)]))
    assert (found.score[150:300] == 0).all()
    assert found.score[300] > 0.5
    assert ensemble.DETECTORS[int(found.detector[300])] in ensemble.DETECTORS


def test_what_lasts_becomes_usual() -> None:
    found = run(np.concatenate((noisy(400), 80.0 + np.random.default_rng(2).normal(0.0, 1.0, 1500))))
    assert found.score[400:410].max() > 0.5
    assert found.score[1000:].max() < 0.5
    assert found.lasting[-1] < 0.5
