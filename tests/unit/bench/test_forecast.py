"""bench-forecast's quick subset holds its floors: what CI notices when a model, the screening or the backtest gets worse."""

from __future__ import annotations

import numpy as np
import pytest

from bench import forecast_corpus as corpus
from bench import forecast_faults as faults
from bench import forecast_sweep as sweeping
from bench.forecast_accuracy import Scored, linear, relative, scored
from bench.forecast_hindsight import least_errors
from bench.forecast_report import Figures, figures
from forecasting.settings import Forecasting

RELATIVE_TO_NAIVE = 0.95
COVERAGE = (0.84, 0.96)
SWEEP_MS_PER_SERIES = 12.0
"""10,000 series in 60 s on two cores are 12 ms of one core each; it takes a quarter of that."""


def of_accuracy(found: Scored, horizon: int) -> Figures:
    return figures({horizon: found}, horizon, None, (), (), None, None, None, None, {})


@pytest.mark.slow
def test_forecasts_of_the_fleet_beat_naive_and_their_bands_hold() -> None:
    horizon = Forecasting().horizon_steps
    fleet = corpus.fleet_series(3, nodes=1, hours=30)
    parts = [
        corpus.cut({str(n): y for n, y in enumerate(fleet[metric])}, metric, 5, horizon, memory=metric == "memory_used_bytes")
        for metric in corpus.METRICS
    ]
    found = scored(corpus.joined(parts), horizon, lambda _: None)
    shown = of_accuracy(found, horizon)
    assert float(shown["relative_mase_to_naive"]) <= RELATIVE_TO_NAIVE
    assert COVERAGE[0] <= float(shown["coverage_90"]) <= COVERAGE[1]
    assert 1e3 * found.seconds / len(found.windows) < SWEEP_MS_PER_SERIES
    assert int(shown["windows_unsaid"]) <= 0.05 * len(found.windows)


@pytest.mark.slow
@pytest.mark.skipif(not corpus.NAB.exists(), reason="NAB's data are not beside the repository")
def test_forecasts_of_nab_s_hardware_beat_naive_and_their_bands_hold() -> None:
    found = scored(corpus.cut(corpus.nab_series(), "nab", 8, 72), 72, lambda _: None)
    shown = of_accuracy(found, 72)
    assert float(shown["relative_mase_to_naive"]) <= 1.0
    assert float(shown["relative_mase_to_predict_linear"]) <= 0.8
    assert 0.8 <= float(shown["coverage_90"]) <= 0.97


@pytest.mark.slow
def test_faults_are_foretold_in_time_and_nothing_else() -> None:
    told = faults.injected([0, 1])
    shown = figures({}, 72, None, [told], [faults.clean(1_000, 4, 1)], None, None, None, None, {})
    assert int(shown["faults"]) >= 5
    assert shown["fault_recall"] == 1.0
    assert shown["fault_precision"] == 1.0
    assert float(shown["median_lead_minutes"]) >= 15
    assert shown["false_alerts_per_100_series_days"] == 0.0


@pytest.mark.slow
def test_a_rack_that_warms_up_is_one_incident() -> None:
    found = faults.rack(3_000, 2)
    assert found.alerted == found.cards == 16
    assert found.incidents == 1


@pytest.mark.slow
def test_loads_resizes_and_partitions_foretell_nothing() -> None:
    assert faults.changes(4_000) == 0


@pytest.mark.slow
def test_a_round_over_many_series_is_quick() -> None:
    found = sweeping.sweep(sweeping.mixed(600, corpus.HISTORY, 1), lambda _: None)
    assert found.predicted >= 0.9 * found.series
    assert 0 < found.candidates < 0.1 * found.series


def test_predict_linear_is_the_line_through_the_last_144_points() -> None:
    past = np.concatenate([np.full(96, 500.0), np.arange(144.0)])[None, :]
    assert linear(past, 3)[0] == pytest.approx([144.0, 145.0, 146.0])


def test_scaled_errors_of_a_past_that_never_moved_are_left_out() -> None:
    windows = corpus.cut({"flat": np.full(400, 7.0), "moves": np.arange(400.0) % 7}, "x", 2, 10)
    found = scored(windows, 10, lambda _: None)
    assert np.isnan(found.mase["ours"]).tolist() == [True, True, False, False]
    shown = of_accuracy(found, 10)
    assert shown["windows_without_scale"] == 2
    assert np.isfinite(float(shown["mase_mean"]))


def test_hindsight_is_the_best_of_the_menu_and_never_worse_than_what_is_said() -> None:
    rng = np.random.default_rng(3)
    saw = np.arange(400.0) % 7
    noise = np.cumsum(rng.normal(0, 1, 400))
    windows = corpus.cut({"saw": saw, "noise": noise}, "x", 3, 10)
    found = scored(windows, 10, lambda _: None)
    assert (found.mase["hindsight"] <= np.minimum(found.mase["ours"], found.mase["naive"]) + 1e-12).all()
    assert (found.mase["hindsight"] < found.mase["ours"] - 1e-6).any()


def test_of_models_the_one_that_turns_out_best_counts() -> None:
    line = np.arange(200.0)
    level = np.full(10, 199.0)
    assert least_errors([line, line], np.stack((np.arange(200.0, 210.0), level)), 10) == pytest.approx([0.0, 0.0], abs=0.2)


def test_relative_errors_are_geometric_means() -> None:
    assert relative(np.array([1.0, 4.0, np.nan]), np.array([2.0, 2.0, 1.0])) == pytest.approx(1.0)


def test_the_mix_of_the_sweep_is_what_it_says() -> None:
    y = sweeping.mixed(200, corpus.HISTORY, 1)
    assert y.shape == (200, corpus.HISTORY)
    assert (np.ptp(y, axis=1) == 0).sum() == 60
    assert y.min() >= 0
    assert y.max() <= 100
