"""The menu, the backtest, ETA and validation on arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting.backtest import backtest, origins
from forecasting.eta import crossing
from forecasting.interval import band
from forecasting.models import MENU, Damped, Holt, Model, Naive, Unfit
from forecasting.predict import Job, Prediction, predict
from forecasting.validate import flaw


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_holt_sees_a_certain_leak_105_steps_away() -> None:
    y = 2.0 * np.arange(60) + np.random.default_rng(1).normal(0, 0.2, 60)
    paths = Holt().fit(y).simulate(120, 400, rng())
    found = crossing(paths, y[-1], 2.0 * (59 + 105))
    assert found.probability > 0.95
    assert found.p50_steps == pytest.approx(105, rel=0.1)
    assert found.p10_steps == pytest.approx(105, rel=0.1)


def test_damped_is_blind_at_that_distance_and_so_holt_is_on_the_menu() -> None:
    y = 2.0 * np.arange(60) + np.random.default_rng(1).normal(0, 0.2, 60)
    found = crossing(Damped().fit(y).simulate(120, 400, rng()), y[-1], 2.0 * (59 + 105))
    assert found.probability < 0.5
    assert found.p50_steps is None


def test_straight_leak_is_given_to_holt_and_a_levelling_one_to_damped() -> None:
    noise = np.random.default_rng(2).normal(0, 0.05, 60)
    straight = predict(Job(np.arange(60.0) + noise, True, 1, limit=80.0), horizon=30, paths=400)
    levelling = predict(Job(72 - 40 * np.exp(-np.arange(60) / 40) + noise, True, 1, limit=76.0), horizon=30, paths=400)
    assert straight.model == "holt"
    assert straight.crossing is not None
    assert straight.crossing.p50_steps == pytest.approx(21, rel=0.1)
    assert levelling.model == "damped"
    assert levelling.crossing is not None
    assert levelling.crossing.probability < 0.3


def test_noise_is_left_to_naive_or_a_model_that_does_no_better_in_breaching() -> None:
    y = 72 + np.random.default_rng(3).normal(0, 0.05, 60)
    found = predict(Job(y, True, 1, limit=76.0), horizon=30, paths=400)
    assert found.crossing is not None
    assert found.crossing.probability == 0.0


@pytest.mark.parametrize("model", MENU, ids=lambda m: m.name)
def test_constant_series_stays_constant(model: Model) -> None:
    fitted = model.fit(np.full(40, 100.0))
    assert fitted.mean(30) == pytest.approx(np.full(30, 100.0))
    assert np.ptp(fitted.simulate(30, 100, rng())) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("model", [Holt(), Damped()], ids=lambda m: m.name)
@pytest.mark.parametrize("y", [np.arange(3.0), np.array([1.0, np.nan] * 10), np.array([1.0, np.inf] * 10)], ids=["short", "nan", "inf"])
def test_what_cannot_be_fitted_is_said(model: Model, y: np.ndarray) -> None:
    with pytest.raises(Unfit):
        model.fit(y)


def test_naive_covers_its_own_noise() -> None:
    y = np.random.default_rng(4).normal(0, 1, 400)
    p05, p50, p95 = band(Naive().fit(y[:300]).simulate(20, 2000, rng()), None, None)
    assert np.abs(p50 - y[299]).max() < 0.35  # the last value stays
    assert 2.0 < float((p95 - p05).mean()) / 2 < 2.8  # y[s + h] - y[s] has sigma 1.41: 1.645 * 1.41 = 2.3


@pytest.mark.parametrize("model", MENU, ids=lambda m: m.name)
def test_a_fit_seen_after_its_own_series_is_itself(model: Model) -> None:
    y = np.cumsum(np.random.default_rng(8).normal(1, 0.5, 50))
    fitted = model.fit(y)
    assert fitted.after(y).mean(5) == pytest.approx(fitted.mean(5), rel=1e-6)
    assert fitted.after(y[:30]).mean(1) == pytest.approx(y[29], abs=4)


def test_scale_does_not_matter() -> None:
    y = np.arange(40.0) + np.random.default_rng(6).normal(0, 0.3, 40)
    small = predict(Job(y, True, 1, limit=60.0), horizon=30, paths=400)
    large = predict(Job(y * 1e9, True, 1, limit=60e9), horizon=30, paths=400)
    assert small.model == large.model
    assert large.p50 / 1e9 == pytest.approx(small.p50, rel=1e-3)


def test_uncrossed_quantiles_are_absent() -> None:
    paths = np.vstack([np.linspace(1, 30, 30)] * 3 + [np.zeros(30)] * 7)
    found = crossing(paths, 0.0, 15.0)
    assert found.probability == pytest.approx(0.3)
    assert found.p10_steps == pytest.approx(15.0)
    assert found.p50_steps is None
    assert found.p90_steps is None


def test_eta_is_from_unclamped_paths_while_the_band_is_clamped() -> None:
    y = np.arange(60.0, 79.0)
    found = predict(Job(y, True, 1, limit=79.9, low=0.0, high=80.0), horizon=30, paths=200)
    assert found.p95.max() == 80.0
    assert found.crossing is not None
    assert found.crossing.p50_steps == pytest.approx(1.9, abs=0.1)


def test_horizon_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="horizon is 0"):
        backtest(np.arange(30.0), 0)


def test_every_origin_leaves_enough_to_fit() -> None:
    assert origins(8, 30) == [(6, 2)]
    assert origins(5, 30) == []
    assert all(n >= 6 and n + steps <= 60 for n, steps in origins(60, 30))


class Exploding:
    """A model that fits anything and forecasts nonsense."""

    name = "exploding"
    minimum_points = 6
    cost = 0.0

    def __init__(self, value: float) -> None:
        self.value = value

    def fit(self, y: np.ndarray) -> "Exploding":
        return self

    def after(self, y: np.ndarray) -> "Exploding":
        return self

    def mean(self, horizon: int) -> np.ndarray:
        return np.full(horizon, 1.0)

    def simulate(self, horizon: int, paths: int, rng: np.random.Generator) -> np.ndarray:
        return np.full((paths, horizon), self.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30], ids=["nan", "inf", "exploded"])
def test_nonsense_falls_back_and_is_counted(value: float) -> None:
    found = predict(Job(np.arange(30.0), True, 1, limit=60.0), horizon=30, paths=100, menu=(Exploding(value), *MENU))
    assert found.model == "holt"
    assert len(found.fallbacks) == 1
    assert "exploding" in found.fallbacks[0]


def prediction(p05: np.ndarray, p50: np.ndarray, p95: np.ndarray) -> Prediction:
    return Prediction("naive", None, 4, 2.0, p05, p50, p95, None)


@pytest.mark.parametrize(
    ("found", "flawed"),
    [
        (prediction(np.full(4, 1.0), np.full(4, 2.0), np.full(4, 3.0)), None),
        (prediction(np.full(4, 9.0), np.full(4, 2.0), np.full(4, 3.0)), "quantiles out of order"),
        (prediction(np.full(4, 1.0), np.full(4, 2.0), np.full(4, np.nan)), "not finite"),
        (prediction(np.full(3, 1.0), np.full(3, 2.0), np.full(3, 3.0)), "3 steps instead of 4"),
        (prediction(np.full(4, 1.0), np.full(4, 2.0), np.full(4, 11.0)), "outside physical bounds"),
    ],
    ids=["sound", "crossed quantiles", "nan", "short", "bounds"],
)
def test_validation(found: Prediction, flawed: str | None) -> None:
    assert flaw(found, 4, Job(np.array([1.0, 2.0, 3.0, 2.0]), False, 1, low=0.0, high=10.0)) == flawed


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1e11, allow_nan=False), min_size=1, max_size=40), st.booleans())
def test_whatever_comes_in_what_goes_out_is_sound(values: list[float], assess: bool) -> None:
    job = Job(np.asarray(values), assess, 1, limit=0.95e11, low=0.0, high=1e11)
    assert flaw(predict(job, horizon=10, paths=100), 10, job) is None
