"""What every anomaly detector promises, alone: scores of 0 to 1, the same at every scale, and nothing odd for ever."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.operators.detect.anomaly import seasonal
from streams.operators.detect.anomaly.score import score
from tests.unit.streams.detect.anomaly.given import DETECTORS, HOUR, WARM, alone, noisy

ALL = pytest.mark.parametrize("detector", DETECTORS)


@ALL
def test_scores_lie_between_0_and_1_and_come_after_the_warm_up(detector: str) -> None:
    spikes = noisy(400)
    spikes[300] = 1e6
    found = alone(detector, spikes[:, None])[:, 0]
    assert np.isnan(found[:WARM]).all()
    assert ((found[WARM:] >= 0) & (found[WARM:] <= 1)).all()


@ALL
def test_scores_do_not_depend_on_scale_and_offset(detector: str) -> None:
    series = np.concatenate((noisy(250), noisy(60, 2, 90.0)))
    found = alone(detector, np.stack((series, 1e9 * series, 1e-9 * series, series + 1e6, -series), axis=1))
    for k in range(1, 4):
        np.testing.assert_allclose(found[:, k], found[:, 0], rtol=1e-3, atol=2e-3)
    assert np.nanmax(found[:, 4]) <= 1.0


@ALL
@pytest.mark.parametrize("size", [1e-6, 0.1, 1e6])
def test_a_constant_series_that_changes_is_an_anomaly(detector: str, size: float) -> None:
    """A mean or a way needs some points to show that the level is another one."""
    levels = np.array([0.0, 70.0, -3.0, 1e12])
    series = np.tile(levels, (350, 1))
    series[300:] += size * np.where(levels == 0, 1.0, np.abs(levels))
    found = alone(detector, series)
    assert (found[WARM:300] == 0).all()
    assert (found[300:340].max(axis=0) >= 0.5).all()


@ALL
def test_what_lasts_becomes_usual(detector: str) -> None:
    """netdata#12967: the anomaly bit stayed at 100 % on a metric that did not change."""
    steady = np.full(1600, 5.0)
    stepped = np.where(np.arange(1600) < 400, 5.0, 9.0)
    silent = np.where(np.arange(1600) < 400, noisy(1600), 50.0)
    moved = np.where(np.arange(1600) < 400, noisy(1600), noisy(1600, 3, 80.0))
    found = alone(detector, np.stack((steady, stepped, silent, moved), axis=1))
    assert (found[-200:] < 0.5).all()
    assert (found[WARM:, 0] == 0).all()


@ALL
def test_huge_and_tiny_values_and_gaps_raise_no_warning(detector: str) -> None:
    series = np.stack((noisy(330) * 1e148, noisy(330) * 1e-100, noisy(330)), axis=1)
    series[300:310, 0] *= -1
    series[200:220, 2] = np.nan
    series[220, 2], series[221, 2], series[222, 2] = np.inf, -np.inf, 1e300
    found = alone(detector, series)
    assert np.isnan(found[200:223, 2]).all()
    np.testing.assert_array_equal(found[:200, 2], alone(detector, series[:200, 2:])[:, 0])


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from(sorted(DETECTORS)),
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=20, max_size=40),
    st.sampled_from([2.0**20, 2.0**-20, -1.0]),
)
def test_any_series_scores_alike_at_any_power_of_two(name: str, values: list[float], scale: float) -> None:
    series = np.concatenate((noisy(WARM), np.array(values)))
    one, other = alone(name, np.stack((series, abs(scale) * series), axis=1)).T
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@ALL
def test_a_series_is_judged_alike_alone_and_among_others(detector: str) -> None:
    series = np.stack([noisy(220, seed) for seed in range(4)], axis=1)
    together = alone(detector, series)
    for k in (0, 3):
        np.testing.assert_array_equal(together[:, k], alone(detector, series[:, k : k + 1])[:, 0])


def test_the_hour_of_the_day_is_missed_where_the_value_itself_is_not_new() -> None:
    at = np.arange(12 * 96)
    day = 50.0 + 30.0 * np.sin(2 * np.pi * at / 96) + np.random.default_rng(1).normal(0.0, 0.5, len(at))
    odd = day.copy()
    odd[8 * 96 + 24] = 25.0
    found = alone("seasonal", np.stack((day, odd), axis=1), step_ns=HOUR // 4)
    assert (found[WARM : 4 * 96] == 0).all()
    assert found[8 * 96 + 24, 1] > 0.5
    assert found[8 * 96 + 24, 0] < 0.5


def test_the_hour_says_nothing_where_hours_tell_nothing() -> None:
    found = alone("seasonal", noisy(12 * 96)[:, None], step_ns=HOUR // 4)
    assert (found[WARM:] == 0).mean() > 0.9


def test_hours_of_working_days_and_of_weekends_are_two() -> None:
    monday = 4 * 24  # 1970-01-05
    hours = np.array([monday, monday + 23, monday + 5 * 24, monday + 7 * 24 - 1, monday + 7 * 24])
    assert list(seasonal.bucket(hours)) == [0, 23, 24, 47, 0]


def test_a_score_is_a_half_at_the_limit() -> None:
    np.testing.assert_allclose(score(np.array([0.0, 2.0, 1e12]), 2.0), [0.0, 0.5, 1.0], atol=1e-9)
    with pytest.raises(ValueError, match="above 0"):
        score(np.zeros(1), 0.0)
