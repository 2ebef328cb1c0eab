"""The menu, the backtest, bands, ETA and validation on arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting.backtest import backtest
from forecasting.eta import crossing
from forecasting.interval import margins
from forecasting.models import (
    MENU,
    AutoReg,
    Batch,
    Counting,
    Damped,
    Fitted,
    Holt,
    Line,
    Linear,
    Model,
    Naive,
    Seasonal,
    Theta,
    Trial,
    gather,
    trial,
)
from forecasting.models.seasonal import periods
from forecasting.predict import Job, Prediction, Unpredictable, predict, predict_all
from forecasting.validate import flaw
from tests.unit.forecasting.shapes import Floats

GAUGES = [model for model in MENU if model.kind == "gauge"]
COUNTERS = [model for model in MENU if model.kind == "counter"]


def rng(seed: int = 5) -> np.random.Generator:
    return np.random.default_rng(seed)


def fit(model: Model, y: Floats, horizon: int = 30) -> tuple[Fitted, Batch]:
    batch = gather([y])
    return model.fit(batch, trial(batch, horizon), horizon), batch


def mean(model: Model, y: Floats, horizon: int = 30) -> Floats:
    """The point forecast in the unit of `y`."""
    found, batch = fit(model, y, horizon)
    return np.asarray(found.mean[0] * batch.scale[0] + batch.last[0])


def futures(model: Model, y: Floats, horizon: int, paths: int = 400) -> Floats:
    found, batch = fit(model, y, horizon)
    return np.asarray(found.simulate(0, paths, rng()) * batch.scale[0] + batch.last[0])


def test_holt_sees_a_certain_leak_105_steps_away() -> None:
    y = 2.0 * np.arange(60) + rng(1).normal(0, 0.2, 60)
    found = crossing(futures(Holt(), y, 120), y[-1], 2.0 * (59 + 105))
    assert found.probability > 0.95
    assert found.p50_steps == pytest.approx(105, rel=0.1)
    assert found.p10_steps == pytest.approx(105, rel=0.1)


def test_damped_is_blind_at_that_distance_and_so_others_are_on_the_menu() -> None:
    y = 2.0 * np.arange(60) + rng(1).normal(0, 0.2, 60)
    found = crossing(futures(Damped(), y, 120), y[-1], 2.0 * (59 + 105))
    assert found.probability < 0.5
    assert found.p50_steps is None


@pytest.mark.parametrize("seed", range(5))
def test_straight_leak_is_given_to_a_straight_model_and_a_levelling_one_is_not_believed(seed: int) -> None:
    noise = rng(seed).normal(0, 0.05, 60)
    straight = predict(Job(np.arange(60.0) + noise, True, 1, limit=80.0), horizon=30, paths=400)
    levelling = predict(Job(72 - 40 * np.exp(-np.arange(60) / 20) + noise, True, 1, limit=76.0), horizon=30, paths=400)
    assert straight.model in {"holt", "line"}
    assert straight.crossing is not None
    assert straight.crossing.p50_steps == pytest.approx(21, rel=0.1)
    assert levelling.crossing is not None
    assert levelling.crossing.probability < 0.3


def test_theta_is_half_the_line() -> None:
    y = np.arange(60.0)
    assert mean(Theta(), y)[29] - mean(Theta(), y)[0] == pytest.approx(29 / 2, rel=1e-6)


def test_autoregression_goes_back_to_the_middle_and_arima_does_not() -> None:
    y = np.zeros(300)
    for i, shock in enumerate(rng(2).normal(0, 1, 299)):
        y[i + 1] = 0.8 * y[i] + shock
    y[-1] = 8.0
    y += 100
    assert mean(AutoReg(), y)[29] == pytest.approx(100, abs=2)
    assert mean(AutoReg(changes=True, ridge=1e-3), y)[29] > 102


def test_a_line_is_not_bent_by_outliers() -> None:
    y = np.arange(80.0) + rng(3).normal(0, 0.1, 80)
    y[[20, 40, 41, 60]] += 50
    assert mean(Line(), y)[29] == pytest.approx(79 + 30, abs=2)


@pytest.mark.parametrize("period", [12, 30, 60])
def test_a_period_is_found_and_carried_on(period: int) -> None:
    t = np.arange(240 + 30)
    y = 50 + 10 * np.sign(np.sin(2 * np.pi * t / period)) + rng(4).normal(0, 0.5, t.size)
    assert periods(gather([y[:240]]))[0] == pytest.approx(period, abs=1)
    job = Job(y[:240], False, 1)
    found = predict(job, horizon=30, paths=100)
    assert found.model == "seasonal"
    assert np.abs(found.p50 - y[240:]).mean() < 0.4 * np.abs(y[239] - y[240:]).mean()


@pytest.mark.parametrize("walk", range(5))
def test_what_only_wanders_has_no_period(walk: int) -> None:
    batch = gather([np.cumsum(rng(walk).normal(size=240)), np.arange(240.0), rng(walk).normal(size=240), np.ones(240)])
    assert periods(batch).tolist()[1:] == [0, 0, 0]
    fitted = Seasonal().fit(batch, trial(batch, 30), 30)
    assert fitted.fits.tolist()[1:] == [False, False, False]


def test_noise_breaches_nothing() -> None:
    y = 72 + rng(3).normal(0, 0.05, 60)
    found = predict(Job(y, True, 1, limit=76.0), horizon=30, paths=400)
    assert found.crossing is not None
    assert found.crossing.probability == 0.0


@pytest.mark.parametrize("model", GAUGES, ids=lambda m: m.name)
@pytest.mark.parametrize("value", [0.0, 100.0])
def test_constant_series_stays_constant(model: Model, value: float) -> None:
    y = np.full(40, value)
    assert mean(model, y) == pytest.approx(np.full(30, value))
    assert np.ptp(futures(model, y, 30, 100)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("model", MENU, ids=lambda m: m.name)
def test_series_of_every_length_side_by_side_say_what_they_say_alone(model: Model) -> None:
    series = [np.cumsum(np.abs(rng(n).normal(1, 0.5, n))) + 5 * np.sin(np.arange(n)) * (model.kind == "gauge") for n in (30, 61, 200)]
    together = gather(series)
    found = model.fit(together, trial(together, 20), 20)
    for row, y in enumerate(series):
        alone = gather([y])
        one = model.fit(alone, trial(alone, 20), 20)
        assert one.fits[0] == found.fits[row]
        assert found.mean[row] == pytest.approx(one.mean[0], abs=1e-9)
        assert found.spread[row] == pytest.approx(one.spread[0], abs=1e-9)
        assert found.tested[row] == pytest.approx(one.tested[0], abs=1e-9)


@pytest.mark.parametrize(
    ("model", "swing", "jump", "most"),
    [(model, 5.0, 500.0, 30.0) for model in GAUGES if model.name != "seasonal"] + [(Seasonal(), 50.0, 60.0, 20.0)],
    ids=lambda x: getattr(x, "name", ""),
)
def test_what_is_said_at_an_origin_rests_on_what_came_before(model: Model, swing: float, jump: float, most: float) -> None:
    """The future after the origin is changed; what was said there may change only by the parameters, never follow the change."""
    t = np.arange(120)
    y = 50 + swing * np.sin(2 * np.pi * t / 24) + rng(6).normal(0, 0.2, 120)
    other = y.copy()
    other[110:] += jump
    batches = [gather([series]) for series in (y, other)]
    trials = [trial(batch, 10) for batch in batches]
    early = np.nonzero(trials[0].at[0] < 90)[0]
    said = [
        model.fit(batch, asked, 10).tested[0, early] * batch.scale[0] + batch.last[0] for batch, asked in zip(batches, trials, strict=True)
    ]
    assert np.abs(said[1] - said[0]).max() < most


def test_naive_covers_its_own_noise() -> None:
    y = rng(4).normal(0, 1, 400)
    batch = gather([y])
    asked = trial(batch, 20)
    found = Naive().fit(batch, asked, 20)
    width = margins(found.tested, found.spread, asked)
    half = (width.above - width.below)[0].mean() * batch.scale[0] / 2
    assert 2.0 < half < 3.2  # y[s + h] - y[s] has sigma 1.41: 1.645 * 1.41 = 2.3


@pytest.mark.parametrize("seed", range(3))
def test_bands_hold_what_comes_nine_times_of_ten(seed: int) -> None:
    horizon, inside = 30, []
    random = rng(seed)
    for _ in range(60):
        steps = random.normal(0, 1, 200 + horizon)
        y = np.cumsum(steps) if random.random() < 0.5 else steps
        found = predict(Job(y[:200], False, 1), horizon=horizon, paths=100)
        inside.append(((y[200:] >= found.p05) & (y[200:] <= found.p95)).mean())
    assert 0.84 < np.mean(inside) < 0.96


def test_scale_does_not_matter() -> None:
    y = np.arange(40.0) + rng(6).normal(0, 0.3, 40)
    small = predict(Job(y, True, 1, limit=60.0), horizon=30, paths=400)
    large = predict(Job(y * 1e9, True, 1, limit=60e9), horizon=30, paths=400)
    assert small.model == large.model
    assert large.p50 / 1e9 == pytest.approx(small.p50, rel=1e-3)


def test_a_limit_below_is_the_mirror_of_one_above() -> None:
    y = np.arange(40.0) + rng(6).normal(0, 0.3, 40)
    above = predict(Job(y, True, 1, limit=60.0, low=0.0, high=70.0), horizon=30, paths=400)
    below = predict(Job(-y, True, 1, limit=-60.0, low=-70.0, high=0.0, sign=-1), horizon=30, paths=400)
    assert below.crossing == above.crossing
    assert below.p05.tolist() == (-above.p95).tolist()
    assert below.current == -above.current
    assert below.p05.min() >= -70.0


def test_counts_never_fall_and_grow_as_they_came() -> None:
    y = np.cumsum(rng(7).poisson(3.0, 120)).astype(float)
    found = predict(Job(y, True, 1, limit=y[-1] + 60, kind="counter"), horizon=30, paths=2000)
    assert found.model.startswith("counting")
    assert found.p05[0] >= y[-1]
    assert (np.diff(found.p50) >= 0).all()
    assert found.p50[-1] - y[-1] == pytest.approx(90, rel=0.2)
    assert found.crossing is not None
    assert found.crossing.probability > 0.95
    assert found.crossing.p50_steps == pytest.approx(20, rel=0.25)


def test_bursts_widen_what_is_expected_of_a_counter() -> None:
    even = np.cumsum(rng(8).poisson(4.0, 200)).astype(float)
    bursts = np.cumsum(np.where(rng(8).random(200) < 0.05, 80, 0)).astype(float)
    width = [float(np.ptp(np.quantile(futures(Counting(), y, 30)[:, -1], (0.05, 0.95)))) for y in (even, bursts)]
    assert width[1] > 3 * width[0]


def test_a_rate_that_grows_is_seen_to_grow() -> None:
    y = np.cumsum(rng(9).poisson(np.linspace(0, 12, 120))).astype(float)
    found = predict(Job(y, True, 1, limit=1e9, kind="counter"), horizon=30, paths=400)
    assert found.p50[-1] - y[-1] > 30 * 12
    assert found.model == "counting_faster"


@pytest.mark.parametrize("y", [np.zeros(40), np.full(40, 7.0)], ids=["zero", "seven"])
def test_a_counter_that_stands_still_stays(y: Floats) -> None:
    found = predict(Job(y, True, 1, limit=100.0, kind="counter", low=0.0), horizon=30, paths=400)
    assert found.p50.tolist() == [y[-1]] * 30
    assert found.crossing is not None
    assert found.crossing.probability < 0.05


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


def test_every_origin_leaves_enough_to_fit_and_something_to_compare() -> None:
    batch = gather([np.arange(8.0), np.arange(60.0), np.arange(5.0)])
    asked = trial(batch, 30)
    assert asked.possible.tolist() == [True, True, False]
    assert asked.at[0].tolist() == sorted(asked.at[0].tolist())
    assert set(asked.at[0].tolist()) == {5, 6}
    assert asked.weight[:2].sum(axis=(1, 2)) == pytest.approx([1.0, 1.0])
    assert not asked.known[1][:, asked.steps > 20].any()


class Nonsense:
    """A model that fits anything, was always right, and forecasts `value`."""

    name = "nonsense"
    kind = "gauge"
    minimum_points = 6
    cost = 0.0

    def __init__(self, value: float) -> None:
        self.value = value

    def fit(self, batch: Batch, trial: Trial, horizon: int) -> Linear:
        shape = (len(batch), horizon)
        errors = np.full(batch.z.shape, self.value)
        return Linear(
            np.ones(len(batch), dtype=np.bool_), trial.actual, np.zeros(shape), np.ones(shape), errors, np.full(shape, self.value)
        )


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["nan", "inf"])
def test_futures_that_are_not_finite_fall_back_and_are_counted(value: float) -> None:
    found = predict(Job(np.arange(30.0), True, 1, limit=60.0), horizon=30, paths=100, menu=(Nonsense(value), *MENU))  # type: ignore[arg-type]  # kind is a plain str there
    assert found.model in {"holt", "line"}
    assert len(found.fallbacks) == 1
    assert "nonsense" in found.fallbacks[0]


def prediction(p05: Floats, p50: Floats, p95: Floats) -> Prediction:
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


def test_an_explosion_is_no_forecast() -> None:
    exploded = prediction(np.full(4, 1.0), np.full(4, 1e6), np.full(4, 1e7))
    assert flaw(exploded, 4, Job(np.array([1.0, 2.0, 3.0, 2.0]), False, 1)) == "exploded"


def test_one_bad_series_costs_the_others_nothing() -> None:
    good = np.arange(40.0)
    found = predict_all([Job(good, False, 1), Job(np.full(20, np.nan), False, 2), Job(np.empty(0), True, 3)], horizon=5, paths=100)
    alone = predict(Job(good, False, 1), horizon=5, paths=100)
    assert isinstance(found[0], Prediction)
    assert found[0].p50.tolist() == alone.p50.tolist()
    assert found[1:] == ["no finite point", "no finite point"]
    with pytest.raises(Unpredictable, match="no finite point"):
        predict(Job(np.empty(0), True, 3), horizon=5, paths=100)


def test_the_backtest_scores_naive_whatever_the_menu() -> None:
    tested = backtest(gather([np.arange(40.0)]), 5, menu=(Holt(),))
    assert [model.name for model in tested.models] == ["naive", "holt"]
    assert tested.models[tested.order[0, 0]].name == "holt"
    assert tested.mase[0, 0] > tested.mase[0, 1]


values = st.floats(0, 1e11, allow_nan=False)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.lists(values, min_size=1, max_size=40), st.booleans(), st.sampled_from([1, -1])), min_size=1, max_size=4))
def test_whatever_comes_in_what_goes_out_is_sound(series: list[tuple[list[float], bool, int]]) -> None:
    jobs = [Job(np.asarray(y), assess, 1, limit=0.95e11, low=0.0, high=1e11, sign=sign) for y, assess, sign in series]
    for job, found in zip(jobs, predict_all(jobs, horizon=10, paths=100), strict=True):
        assert isinstance(found, Prediction)
        assert flaw(found, 10, job) is None


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40))
def test_whatever_is_counted_what_goes_out_is_sound(increments: list[int]) -> None:
    y = np.cumsum(np.asarray(increments, dtype=np.float64))
    job = Job(y, True, 1, limit=1e6, low=0.0, kind="counter")
    found = predict(job, horizon=10, paths=100)
    assert flaw(found, 10, job) is None
    assert (found.p05 >= y[-1]).all()
