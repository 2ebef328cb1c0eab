"""Whether a device's metrics still go together."""

import numpy as np
import pytest
from numpy.typing import NDArray

from streams.operators.detect import residual
from streams.operators.detect.residual import Residuals
from streams.operators.detect.table import Table

SECOND = 1_000_000_000
OPTIONS = Residuals()
FAULT, POINTS = 500, 520

Floats = NDArray[np.float64]


def cards(n: int = 4, seed: int = 0, points: int = POINTS) -> Floats:
    """(points, cards, metrics): power, temperature, memory temperature and two activities, all of one load that wanders."""
    rng = np.random.default_rng(seed)
    load = np.clip(0.5 + 0.3 * np.sin(np.arange(points)[:, None] / 40 + np.arange(n)) + rng.normal(0, 0.02, (points, n)), 0, 1)
    power = 118 + 545 * load * (1 + rng.normal(0, 0.01, load.shape))
    core = 33 + 0.05 * power + rng.normal(0, 0.2, load.shape)
    return np.stack([power, core, core + 7 + 6 * load + rng.normal(0, 0.2, load.shape), 0.8 * load, 0.6 * load], axis=2)


def scores(values: Floats, options: Residuals = OPTIONS) -> Floats:
    table = Table()
    residual.define(table, values.shape[2])
    rows = np.array([table.new_row() for _ in range(values.shape[1])], np.intp)
    found = [residual.score(table, rows, np.full(len(rows), (n + 1) * 10 * SECOND), values[n], options).score for n in range(len(values))]
    return np.stack(found)


def test_what_goes_together_is_not_odd_and_first_it_is_learnt() -> None:
    found = scores(cards())
    assert np.isnan(found[: OPTIONS.warm_up_points]).all()
    assert np.nanmax(found) < 0.5


def test_a_temperature_that_does_not_fit_the_power_is_odd_though_both_are_usual() -> None:
    values = cards()
    hot = values[FAULT : FAULT + 3, 0, 1] + 8.0
    assert hot.max() < values[:, 0, 1].max()
    values[FAULT : FAULT + 3, 0, 1] = hot
    found = scores(values)
    assert found[FAULT : FAULT + 5, 0].max() > 0.5
    assert np.nanmax(np.delete(found, 0, axis=1)) < 0.5


def test_metrics_that_never_moved_and_then_do_are_odd() -> None:
    values = np.full((FAULT + 3, 1, 4), 5.0)
    values[FAULT:, 0, 2] = 6.0
    found = scores(values)[:, 0]
    assert np.nanmax(found[:FAULT]) < 0.1
    assert found[FAULT] > 0.5


def test_what_lasts_becomes_usual() -> None:
    values = cards(2, points=900)
    values[300:, 1, 1] += 15.0
    found = scores(values, Residuals(memory_points=100, warm_up_points=200))
    assert found[300:310, 1].max() > 0.5
    assert found[-200:, 1].max() < 0.5


def test_a_point_that_lacks_a_metric_says_nothing() -> None:
    values = cards()
    gap = values.copy()
    gap[450:453, 2, 3] = np.nan
    found, whole = scores(gap), scores(np.delete(values, slice(450, 453), axis=0))
    np.testing.assert_array_equal(found[450:453, 2], [found[449, 2]] * 3)
    np.testing.assert_allclose(found[453:, 2], whole[450:, 2], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_scores_do_not_depend_on_the_units(scale: float) -> None:
    values = cards()
    values[FAULT:, 1, 1] += 8.0
    np.testing.assert_allclose(scores(values), scores(values * scale), rtol=1e-5, atol=1e-7)


def test_a_device_does_not_depend_on_who_is_looked_at_with_it() -> None:
    values = cards()
    np.testing.assert_array_equal(scores(values)[:, :2], scores(values[:, :2]))
