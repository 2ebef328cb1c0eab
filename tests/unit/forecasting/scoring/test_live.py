"""The score while it runs: rolling, bounded, from the worker's own history; and what of it the role's health endpoint says."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from forecasting.predict import Prediction
from forecasting.scoring.live import MOST, Live, Quality
from schemas.status import RunnerStatus
from tests.unit.forecasting import shapes
from tests.unit.forecasting.fleet import Run
from xpulse.run.report import of_runner, quality_by

STEP = 1_000_000_000


def prediction(horizon: int = 3, value: float = 10.0) -> Prediction:
    band = np.full(horizon, value)
    return Prediction("naive", None, 20, value, band - 1, band, band + 1, None)


def looked(live: Live, key: Hashable, values: list[float], at: int) -> None:
    live.judge("m", {key: 0}, np.array([(at - 1) * STEP]), np.array([values]), at * STEP)


def test_a_forecast_is_judged_once_its_time_has_come() -> None:
    quality: dict[str, Quality] = {}
    live = Live(STEP, quality)
    live.said("m", "a", 10 * STEP, prediction(), np.array([9.0, 10.0, 9.0]))
    looked(live, "a", [10.0, 10.0, 10.5, 12.0, 10.0], 14)
    assert quality == {}
    # columns are steps 10 .. 14: what came after step 10 is 10.5, 12, 10
    looked(live, "a", [10.0, 10.5, 12.0, 10.0, 10.0], 15)
    assert quality["m"].judged == 1
    assert quality["m"].coverage == pytest.approx(2 / 3)
    assert quality["m"].mase == pytest.approx((0.5 + 2 + 0) / 3)
    looked(live, "a", [10.0] * 5, 16)
    assert quality["m"].judged == 1


def test_what_is_not_known_is_not_judged() -> None:
    quality: dict[str, Quality] = {}
    live = Live(STEP, quality)
    live.said("m", "gone", 10 * STEP, prediction(), np.array([9.0, 10.0]))
    looked(live, "another", [1.0] * 5, 15)
    live.said("m", "a", 10 * STEP, prediction(), np.array([9.0, 10.0]))
    looked(live, "a", [np.nan] * 5, 15)
    live.said("m", "a", 10 * STEP, prediction(), np.array([9.0, 10.0]))
    looked(live, "a", [10.0] * 5, 400)
    assert quality == {}


def test_only_so_many_wait() -> None:
    live = Live(STEP, {})
    for i in range(MOST + 10):
        live.said("m", i, 0, prediction(), np.array([1.0]))
    assert len(live.due("m", 100 * STEP)) == MOST


def test_it_forgets() -> None:
    quality = Quality()
    for _ in range(3000):
        quality.add(0, 10, 5.0)
    for _ in range(3000):
        quality.add(10, 10, 1.0)
    assert quality.coverage == pytest.approx(1, abs=0.01)
    assert quality.mase == pytest.approx(1, abs=0.02)
    quality.add(10, 10, float("nan"))
    assert quality.mase == pytest.approx(1, abs=0.02)


def test_the_worker_keeps_its_score_and_its_endpoint_says_it() -> None:
    run = Run()
    run.settings = run.settings.model_copy(update={"plain_every_rounds": 5})
    run.restart()
    run.feed({"sim:a": {"memory_used_bytes": shapes.flat(100, 1)}, "sim:b": {"memory_used_bytes": shapes.leak(100, 40, 60, 1)}})
    quality = run.processor.forecast_quality["memory_used_bytes"]
    assert quality.judged >= 2
    assert quality.coverage is not None
    assert 0 < quality.coverage <= 1
    report = of_runner(RunnerStatus("forecast"), {}, quality_by(run.processor))
    said = {metric.name: metric.samples for metric in report.metrics}
    assert said["xpulse_forecasts_judged_total"] == [({"metric": "memory_used_bytes"}, quality.judged)]
    assert said["xpulse_forecast_coverage_ratio"] == [({"metric": "memory_used_bytes"}, quality.coverage)]
    assert said["xpulse_forecast_mase_ratio"] == [({"metric": "memory_used_bytes"}, quality.mase)]


def test_other_roles_say_nothing_of_it() -> None:
    assert quality_by(object()) == []
