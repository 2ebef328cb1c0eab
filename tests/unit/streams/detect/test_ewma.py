"""The anomaly detector: scores of 0-1 with the boundary at 0.5, the same at every scale, never NaN where there is a value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streams.operators.detect import ewma
from streams.operators.detect.table import Table
from tests.unit.streams.detect.given import EWMA, SECOND, batch, rule, run, sample, state

ROW = np.array([0])


def scores(values: list[float], step_seconds: float = 1.0) -> NDArray[np.float64]:
    table = Table()
    ewma.define(table, 1)
    table.new_row()
    return np.array(
        [
            ewma.score(table, ROW, np.array([round((i + 1) * step_seconds * SECOND)]), np.array([[v]]), EWMA)[0, 0]
            for i, v in enumerate(values)
        ]
    )


def wave(n: int) -> list[float]:
    return [100 + 5 * np.sin(i * 1.7) for i in range(n)]


def test_nothing_is_said_while_warming_up() -> None:
    found = scores(wave(40))
    assert np.isnan(found[:30]).all()
    assert not np.isnan(found[30:]).any()


@pytest.mark.parametrize("level", [0.0, 5.0, -3.0, 1e12])
def test_a_constant_series_scores_0_and_its_change_is_an_anomaly(level: float) -> None:
    found = scores([level] * 60 + [level * 1.2 + (level == 0)])
    assert (found[30:60] == 0).all()
    assert found[60] > 0.5


def test_what_is_usual_stays_below_and_what_is_far_goes_above_the_boundary() -> None:
    found = scores([*wave(200), 200.0])
    assert found[30:200].max() < 0.5
    assert found[200] > 0.5


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0.1, 1000), min_size=40, max_size=60), st.sampled_from([1e-9, 1e9, 3.0]))
def test_scores_do_not_depend_on_the_scale(values: list[float], scale: float) -> None:
    np.testing.assert_allclose(scores(values), scores([v * scale for v in values]), rtol=1e-6, atol=1e-9)


def test_a_fault_does_not_become_the_norm_at_once_but_a_new_level_does_in_time() -> None:
    found = scores([*wave(100), *[v + 100 for v in wave(2000)]])
    assert (found[100:130] > 0.5).all()
    assert found[-1] < 0.5


def test_after_a_long_gap_it_learns_again() -> None:
    table = Table()
    ewma.define(table, 1)
    table.new_row()
    for i, v in enumerate(wave(60)):
        ewma.score(table, ROW, np.array([i * SECOND]), np.array([[v]]), EWMA)
    found = ewma.score(table, ROW, np.array([86_400 * SECOND]), np.array([[500.0]]), EWMA)
    assert np.isnan(found).all()


def test_absent_values_are_neither_anomaly_nor_zero() -> None:
    found = scores([*wave(50), *[float("nan")] * 20, *wave(50)])
    assert np.isnan(found[50:70]).all()
    assert found[70:].max() < 0.5


def test_the_finding_names_the_metric_that_is_worst() -> None:
    given_ = state(rule({"type": "anomaly", "metrics": ["power_watts", "temperature_celsius"]}, summary="{metric} {value} {probability}"))
    for i, v in enumerate(wave(60)):
        assert run(given_, batch(i, sample("v:1", power_watts=v, temperature_celsius=40))) == []
    found = run(given_, batch(60, sample("v:1", power_watts=100, temperature_celsius=90)))
    assert [(f.metric, f.limit, f.active) for f in found] == [("temperature_celsius", 0.5, True)]
    assert found[0].value > 0.5
    assert found[0].summary.startswith("temperature_celsius 90 °C 0.")
