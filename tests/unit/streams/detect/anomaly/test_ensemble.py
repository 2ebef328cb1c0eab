"""The anomaly ensemble as `samples.step` calls it: many series, any cadence, whatever a device says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.operators.detect.anomaly import ensemble
from streams.operators.detect.anomaly.ensemble import Options
from streams.operators.detect.table import Table
from tests.unit.streams.detect.anomaly.given import OPTIONS, SECOND, STEP, WARM, fleet, noisy, run


def test_nothing_is_said_in_the_warm_up() -> None:
    found = run(noisy(WARM + 60)[:, None])
    assert np.isnan(found.score[:WARM]).all()
    assert not np.isnan(found.score[WARM:]).any()
    assert (found.detector[:WARM] == -1).all()


def test_a_change_is_said_at_once_with_its_detector_and_the_band_that_was_expected() -> None:
    series = noisy(300)
    series[280] = 90.0
    found = run(series[:, None])
    assert found.score[280, 0] > 0.5
    assert ensemble.DETECTORS[int(found.detector[280, 0])] == "level"
    assert 40 < found.low[280, 0] < 50 < found.high[280, 0] < 60


def test_one_event_is_news_once_and_lasts_a_while() -> None:
    series = noisy(600)
    series[300:] += 40.0
    found = run(series[:, None])
    odd = np.flatnonzero(found.score[:, 0] >= 0.5)
    assert odd[0] == 300
    assert len(odd[odd < 400]) <= 3
    assert found.lasting[310, 0] > 0.5
    assert found.lasting[599, 0] < 0.5


@pytest.mark.parametrize("level", [0.0, 70.0, -3.0, 1e12])
def test_a_constant_series_that_changes_is_an_anomaly(level: float) -> None:
    found = run(np.array([level] * 300 + [level * 1.1 + (level == 0)])[:, None])
    assert (found.score[WARM:300] == 0).all()
    assert found.score[300, 0] > 0.5


def test_samples_within_a_point_are_averaged_and_the_score_is_held_between_points() -> None:
    """A second apart: every tenth sample completes a point, and what lies between it and the last one counts by its mean."""
    series = noisy(2000)
    table, rows = fleet(1)
    said = [ensemble.score(table, rows, np.array([(i + 1) * SECOND]), np.array([[v]]), OPTIONS) for i, v in enumerate(series)]
    found = np.array([one.score[0, 0] for one in said])
    averages = np.concatenate((series[:1], series[1:1991].reshape(-1, 10).mean(axis=1)))
    expected = run(averages[:, None]).score[:, 0]
    np.testing.assert_allclose(found[::10], expected, atol=1e-5)
    np.testing.assert_array_equal(found[1801:1810], np.full(9, found[1800]))


def test_what_is_missing_is_not_scored_and_changes_nothing() -> None:
    series = noisy(330)
    at_ns = (np.arange(330) + 1) * STEP
    holes = series.copy()
    holes[[50, 200, 201, 280]] = np.nan
    holes[[60, 210]] = np.inf
    kept = np.abs(holes) < 1e9
    found = run(holes[:, None], at_ns)
    assert np.isnan(found.score[~kept]).all()
    np.testing.assert_array_equal(found.score[kept], run(series[kept][:, None], at_ns[kept]).score)


def test_what_comes_late_or_twice_is_ignored() -> None:
    series, at_ns = noisy(300), (np.arange(300) + 1) * STEP
    order = np.insert(np.arange(300), [120, 250], [119, 200])
    messy = np.where(np.insert(np.zeros(300, bool), [120, 250], True), 1e5, series[order])
    found = run(messy[:, None], at_ns[order])
    extra = [120, 251]
    assert np.isnan(found.score[extra]).all()
    np.testing.assert_array_equal(np.delete(found.score, extra, axis=0), run(series[:, None], at_ns).score)


def test_a_series_starts_again_after_a_long_gap_and_after_its_clock_was_set_far_back() -> None:
    for jump in (2000 * STEP, -2000 * STEP):
        at_ns = np.concatenate(((np.arange(300) + 3000) * STEP, (np.arange(WARM + 20) + 3300) * STEP + jump))
        found = run(np.concatenate((noisy(300), noisy(WARM + 20, 4, 900.0)))[:, None], at_ns)
        assert np.isnan(found.score[300 : 300 + WARM]).all()
        assert (found.score[300 + WARM :] < 0.5).all()


def test_a_forgotten_row_starts_fresh() -> None:
    table, rows = fleet(1)
    for i, value in enumerate(noisy(300)):
        ensemble.score(table, rows, np.array([(i + 1) * STEP]), np.array([[value]]), OPTIONS)
    table.forget([int(rows[0])])
    again = table.new_row()
    assert again == rows[0]
    assert all(
        (column[again] == column[again + 1]).all() or np.isnan(column[again]).all()
        for name, column in table.columns.items()
        if name.startswith("anomaly_")
    )


@settings(max_examples=3, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), st.integers(1, 3))
def test_which_rows_and_columns_come_together_does_not_matter(order: list[int], width: int) -> None:
    random = np.random.default_rng(5)
    values = random.normal(50.0, 1.0, (WARM + 30, 4, width))
    values[WARM + 20 :] += 30.0
    one, other = fleet(4, width), fleet(4, width)
    for i in range(len(values)):
        when = np.full(4, (i + 1) * STEP)
        together = ensemble.score(one[0], one[1], when, values[i], OPTIONS)
        rest = [k for k in range(4) if k not in order]
        for part in (order, rest):
            if part:
                split = ensemble.score(other[0], other[1][part], when[part], values[i][part], OPTIONS)
                np.testing.assert_array_equal(split.score, together.score[part])
                np.testing.assert_array_equal(split.low, together.low[part])


def test_more_rows_than_a_block_are_judged_as_they_would_be_in_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(6).normal(50.0, 1.0, (WARM + 20, 7, 1))
    whole, blocks = fleet(7), fleet(7)
    for i in range(len(values)):
        when = np.full(7, (i + 1) * STEP)
        monkeypatch.setattr(ensemble, "BLOCK", 2048)
        expected = ensemble.score(whole[0], whole[1], when, values[i], OPTIONS)
        monkeypatch.setattr(ensemble, "BLOCK", 3)
        found = ensemble.score(blocks[0], blocks[1], when, values[i], OPTIONS)
        np.testing.assert_array_equal(found.score, expected.score)
        assert found.score.shape == (7, 1)


def test_state_is_small() -> None:
    table, _ = fleet(1)
    assert sum(column.nbytes for column in table.columns.values()) / table.capacity <= 3 * 1024


@pytest.mark.parametrize(
    "options",
    [Options(warm_up=10), Options(point_seconds=-1.0), Options(hold_points=0), Options(forget_gap_points=1)],
    ids=["warm_up", "point_seconds", "hold_points", "forget_gap_points"],
)
def test_options_out_of_range_are_refused(options: Options) -> None:
    with pytest.raises(ValueError, match="anomaly options out of range"):
        ensemble.define(Table(), 1, options)
