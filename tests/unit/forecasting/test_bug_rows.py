"""Bugs of other forecasters (analytics.md section 6, forecast part), asked of ours, each by the number of its row.

Rows 3, 6, 9, 12 and 16 are not in that list.
"""

from __future__ import annotations

import numpy as np
import pytest

from forecasting.backtest import backtest
from forecasting.interval import LEVEL
from forecasting.models import MENU, Linear, Theta, gather, trial
from forecasting.models.batch import Batch
from forecasting.models.model import Kind
from forecasting.models.trial import Trial
from forecasting.pool import Chunk, predict_chunk
from forecasting.predict import CONSTANT, Job, Prediction, Unpredictable, predict, predict_all
from forecasting.settings import Forecasting
from forecasting.targets import MEMORY
from forecasting.validate import flaw
from tests.unit.forecasting import shapes
from tests.unit.forecasting.fleet import Run
from tests.unit.forecasting.shapes import Floats

HORIZON = 30


def said(y: Floats, *, assess: bool = True, limit: float | None = None) -> Prediction:
    job = Job(np.asarray(y, dtype=np.float64), assess, 1, limit=limit)
    found = predict(job, horizon=HORIZON, paths=200)
    assert flaw(found, HORIZON, job) is None
    return found


@pytest.mark.parametrize("value", [0.0, 100.0, 8.5e10])
def test_row_1_a_constant_series_has_a_constant_forecast_a_tiny_band_and_is_called_so(value: float) -> None:
    found = said(np.full(60, value), limit=1e12)
    assert found.p50.tolist() == [value] * HORIZON
    assert np.ptp(np.stack((found.p05, found.p95))) <= 1e-9 * max(value, 1.0)
    assert found.notes == (CONSTANT,)
    assert found.crossing is not None
    assert found.crossing.probability == 0.0


class AllNaN:
    """A model whose fit succeeds and whose forecast is NaN throughout, as ETSModel's was."""

    name = "all_nan"
    kind: Kind = "gauge"
    minimum_points = 2
    cost = 0.0

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        nothing = np.full((len(batch), horizon), np.nan)
        fits = np.ones(len(batch), dtype=np.bool_)
        return Linear(fits, np.zeros_like(trial.actual), nothing, nothing, np.full(batch.z.shape, np.nan), nothing)


def test_row_2_a_fit_of_nan_gives_way_to_another_model_and_is_counted() -> None:
    found = predict(Job(np.arange(60.0), True, 1, limit=80.0), horizon=HORIZON, paths=200, menu=(AllNaN(), *MENU))
    assert found.model in {"holt", "line"}
    assert found.fallbacks == ("all_nan: not finite",)
    assert np.isfinite(np.stack((found.p05, found.p50, found.p95))).all()


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_row_4_plain_arrays_of_any_number_are_taken(kind: type[np.number]) -> None:
    y = np.arange(60).astype(kind)
    found = predict_all([Job(y, False, 1)], horizon=5, paths=100)[0]
    assert isinstance(found, Prediction)
    assert found.p50 == pytest.approx(np.arange(60, 65), abs=0.5)


def test_row_5_theta_of_a_hundred_is_a_hundred_not_a_hundred_and_one() -> None:
    batch = gather([np.full(60, 100.0)])
    fitted = Theta().fit(batch, trial(batch, HORIZON), HORIZON)
    assert (fitted.mean[0] * batch.scale[0] + batch.last[0]).tolist() == [100.0] * HORIZON


@pytest.mark.parametrize("seed", range(5))
def test_row_7_ten_random_points_are_too_little_history_to_publish_and_break_nothing(seed: int) -> None:
    y = np.random.default_rng(seed).normal(size=10)
    assert np.isfinite(said(y).p50).all()
    run = Run(Forecasting(workers=0, targets=(MEMORY,)))
    run.feed({"sim:a": {"memory_used_bytes": shapes.noisy(70 + y, seed)}}, step_seconds=60)
    assert run.said == []


@pytest.mark.parametrize(
    "y", [np.r_[np.zeros(39), 1.0], np.tile([0.0, 1.0], 20), np.r_[1e-300, np.zeros(39)]], ids=["last", "flips", "tiny"]
)
def test_row_8_degenerate_covariances_end_in_a_finite_band(y: Floats) -> None:
    found = said(y)
    assert np.isfinite(np.stack((found.p05, found.p50, found.p95))).all()
    assert (found.p95 >= found.p05).all()


@pytest.mark.parametrize("points", [1, 2, 3, 4, 5])
def test_row_10_very_short_series_have_finite_bands_that_are_no_narrower_for_being_short(points: int) -> None:
    y = np.random.default_rng(2).normal(size=40)
    short, long = said(y[:points]), said(y)
    assert short.level < LEVEL
    assert np.isfinite(np.stack((short.p05, short.p95))).all()
    if points > 2:
        assert np.ptp(np.stack((short.p05, short.p95))) > 0.3 * np.ptp(np.stack((long.p05, long.p95)))


@pytest.mark.parametrize(
    "y",
    [np.zeros(60), np.full(60, 3.0), np.where(np.arange(60) % 12 == 0, 5.0, 0.0), np.r_[np.zeros(58), 1.0, 0.0]],
    ids=["zeros", "threes", "intermittent", "one blip"],
)
@pytest.mark.parametrize("model", [model for model in MENU if model.kind == "gauge"], ids=lambda m: m.name)
def test_row_11_constant_and_intermittent_series_crash_no_model(model: object, y: Floats) -> None:
    tested = backtest(gather([y]), HORIZON, menu=(model,))  # type: ignore[arg-type]  # ids need an object
    assert not tested.broken.any()
    assert np.isfinite(said(y).p50).all()


def test_row_13_series_of_unequal_length_have_the_bands_they_have_alone() -> None:
    rng = np.random.default_rng(3)
    jobs = [Job(np.cumsum(rng.normal(size=n)), False, n) for n in (9, 33, 120, 240)]
    together = predict_all(jobs, horizon=HORIZON, paths=100)
    for job, found in zip(jobs, together, strict=True):
        alone = predict(job, horizon=HORIZON, paths=100)
        assert isinstance(found, Prediction)
        assert found.model == alone.model
        assert found.p95 == pytest.approx(alone.p95, abs=1e-9)


def test_row_14_a_horizon_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="horizon is 0 steps"):
        trial(gather([np.arange(30.0)]), 0)
    with pytest.raises(ValueError, match="horizon_steps"):
        Forecasting(horizon_steps=0)
    found = predict_chunk(Chunk(((7, Job(np.arange(30.0), False, 1)),), 0, 100))
    assert found[0].label == 7
    assert "horizon is 0 steps" in str(found[0].result)


def test_row_15_too_few_past_errors_lower_the_level_and_it_is_said() -> None:
    noise = np.random.default_rng(4).normal(size=240)
    few, many = said(noise[:24], assess=False), said(noise, assess=False)
    assert few.level < LEVEL
    assert few.notes == (f"band proven to {few.level:.0%}",)
    assert many.level == LEVEL
    assert many.notes == ()


@pytest.mark.parametrize("y", [np.empty(0), np.full(30, np.nan), np.r_[np.full(29, np.nan), 1.0]], ids=["empty", "nothing", "one"])
def test_row_17_series_of_nothing_are_skipped_with_a_reason(y: Floats) -> None:
    with pytest.raises(Unpredictable, match="no finite point"):
        predict(Job(y, True, 1), horizon=HORIZON, paths=100)
    assert (
        predict_chunk(Chunk(((1, Job(y, True, 1)), (2, Job(np.zeros(30), True, 1))), 5, 100))[0].result == "unpredictable: no finite point"
    )


def test_row_17_a_card_that_is_all_zero_breaches_nothing() -> None:
    run = Run(Forecasting(workers=0, targets=(MEMORY,)))
    run.feed({"sim:a": {"memory_used_bytes": np.zeros(60)}}, step_seconds=60)
    assert not run.breaches
    assert {s.forecast.model for s in run.said} <= {"naive"}


def rotated(steps: int) -> Floats:
    """A log that grows for hours and is rotated (awesome-prometheus-alerts#467)."""
    return shapes.noisy(50 + 20 * (np.arange(steps) % 110) / 110, 1)


def burst(steps: int) -> Floats:
    """Half an hour of unpacking packages, far from the limit (netdata#859)."""
    return shapes.noisy(27 + 16 * np.clip((np.arange(steps) - 60) / 30, 0, 1), 2)


def replaced(steps: int) -> Floats:
    """The exporter is restarted, and the series begins elsewhere (davealtena/homelab#1568)."""
    return shapes.noisy(np.where(np.arange(steps) < 70, 20.0, 70.0), 3)


def recreated(steps: int) -> Floats:
    """The instance is made anew and fills up within a quarter of an hour (alphagov#270)."""
    t = np.arange(steps)
    return shapes.noisy(np.where(t < 80, 60.0, 3 + 62 * np.clip((t - 80) / 15, 0, 1)), 4)


@pytest.mark.parametrize("shape", [rotated, burst, replaced, recreated], ids=lambda f: f.__name__)
def test_row_18_what_predict_linear_cries_of_is_not_foretold(shape: object) -> None:
    assert callable(shape)
    run = Run(Forecasting(workers=0, plain_every_rounds=1000, targets=(MEMORY,)))
    run.feed({"sim:a": {"memory_used_bytes": shape(180)}}, step_seconds=60)
    assert run.breaches == []


def test_row_18_a_new_node_is_not_judged_by_its_first_half_hour() -> None:
    run = Run(Forecasting(workers=0, plain_every_rounds=1000, targets=(MEMORY,)))
    run.feed({"sim:new": {"memory_used_bytes": shapes.noisy(np.linspace(40, 72, 30), 5)}}, step_seconds=60)
    assert run.breaches == []
