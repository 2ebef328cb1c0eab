"""Gaps, changes of level, and which rises are worth a model."""

from collections.abc import Callable

import numpy as np
import pytest

from forecasting.regime import bridge, last_shift, noise
from forecasting.screening import Answer, Question, screen
from tests.unit.forecasting import shapes
from tests.unit.forecasting.shapes import Floats


def ask(y: Floats, *, limit: float = 76e9, step_seconds: float = 1.0) -> Answer:
    one = np.array([limit])
    fill_seconds = 75.0 if step_seconds == 1.0 else 600.0
    return screen(
        Question(
            y=y[None, :],
            limit=one,
            resolution=one * 0.001,
            fastest=one * step_seconds / fill_seconds,
            guard_ratio=0.6,
            horizon=30,
            min_history=12,
            min_trend=8,
            reach=3.0,
            max_gap=5,
        )
    )


def ever(y: Floats, *, step_seconds: float = 1.0, limit: float = 76e9) -> list[int]:
    """Lengths of the series at which it was a candidate, seen growing through a history of 240."""
    found = []
    for n in range(1, y.size + 1):
        seen = np.full(240, np.nan)
        part = y[max(0, n - 240) : n]
        seen[240 - part.size :] = part
        if ask(seen, step_seconds=step_seconds, limit=limit).candidate[0]:
            found.append(n)
    return found


def counted(y: Floats, *, limit: float = 100.0) -> Answer:
    one = np.array([limit])
    return screen(
        Question(
            y=y[None, :],
            limit=one,
            resolution=one * 0.002,
            fastest=one * 6,
            guard_ratio=0.1,
            horizon=30,
            min_history=12,
            min_trend=8,
            reach=3.0,
            max_gap=5,
            kind="counter",
        )
    )


def test_a_counter_that_keeps_growing_towards_its_limit_is_a_candidate() -> None:
    y = np.cumsum(np.r_[np.zeros(40), np.random.default_rng(1).poisson(2.0, 30)]).astype(float)
    found = counted(y)
    assert found.candidate[0]
    assert 20 <= found.trend_start[0] <= 45


@pytest.mark.parametrize(
    "increments",
    [
        np.zeros(60),
        np.r_[np.zeros(50), 60.0, np.zeros(9)],
        np.r_[np.zeros(20), np.full(20, 3.0), np.zeros(20)],
        np.r_[np.zeros(57), 1.0, 1.0, 1.0] + np.r_[50.0, np.zeros(59)],
        np.full(60, 0.2) * (np.arange(60) % 5 == 0) + np.r_[30.0, np.zeros(59)],
    ],
    ids=["still", "one burst", "grew and stopped", "too few to tell", "too slow to get there"],
)
def test_a_counter_that_will_not_get_there_is_none(increments: Floats) -> None:
    assert not counted(np.cumsum(increments)).candidate[0]


def test_a_counter_begins_with_its_reset() -> None:
    y = np.r_[np.linspace(0, 90, 40), np.cumsum(np.full(15, 3.0))]
    found = counted(y)
    assert found.start[0] == 40
    assert found.candidate[0]
    assert found.trend_start[0] >= 40
    assert not counted(np.r_[np.linspace(0, 90, 40), np.full(15, 0.0)]).candidate[0]


def test_gaps_are_bridged_up_to_a_length_and_cut_beyond() -> None:
    y = np.array([[1.0, np.nan, 3.0, np.nan, np.nan, np.nan, 7.0, 8.0], [np.nan, np.nan, 3.0, np.nan, 5.0, 6.0, 7.0, 8.0]])
    filled, start = bridge(y, 2)
    assert filled[0, :3].tolist() == [1.0, 2.0, 3.0]
    assert filled[1, 2:].tolist() == [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert start.tolist() == [6, 2]


def test_a_series_without_any_value_starts_after_its_end() -> None:
    _, start = bridge(np.full((1, 8), np.nan), 2)
    assert start.tolist() == [8]
    assert not ask(np.full(40, np.nan)).enough[0]


@pytest.mark.parametrize(
    ("y", "begins"),
    [
        (np.r_[np.full(20, 72.0), np.full(20, 2.0)], 21),
        (np.r_[np.full(20, 2.0), np.full(20, 72.0)], 21),
        (np.r_[np.full(20, 5.0), np.linspace(2, 72, 40), np.full(20, 72.0)], 61),
        (np.linspace(60, 70, 40), 0),
        (np.r_[np.full(20, 60.0), 69.0, np.full(19, 60.0)], 0),
        (np.full(40, 60.0), 0),
    ],
    ids=["restart", "jump", "load", "slope", "one stray value", "flat"],
)
def test_only_what_follows_the_last_change_of_level_counts(y: Floats, begins: int) -> None:
    resolution = np.array([0.08])
    start = last_shift(y[None, :], np.array([1.0]), noise(y[None, :], 0.3 * resolution), resolution)
    assert start[0] == pytest.approx(begins, abs=1)


@pytest.mark.parametrize("seed", range(3))
def test_a_leak_is_a_candidate_soon_and_until_the_limit(seed: int) -> None:
    found = ever(shapes.leak(60, onset=20, duration=60, seed=seed))
    assert 20 < found[0] <= 31
    assert len(found) >= 48 - found[0]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "shape",
    [shapes.flat, shapes.growing, shapes.saturating, shapes.diurnal, shapes.sawtooth],
    ids=["flat", "growing", "saturating", "diurnal", "sawtooth"],
)
def test_what_is_no_leak_is_no_candidate(shape: Callable[[int, int], Floats], seed: int) -> None:
    assert ever(shape(200, seed)) == []


@pytest.mark.parametrize("step_seconds", [1.0, 60.0])
def test_a_model_being_loaded_is_no_candidate(step_seconds: float) -> None:
    assert ever(shapes.load(90, 20, 40.0, step_seconds, 1), step_seconds=step_seconds) == []


@pytest.mark.parametrize("minutes", [2.0, 5.0, 10.0, 15.0, 20.0])
def test_a_model_that_comes_from_a_slow_file_server_is_no_candidate(minutes: float) -> None:
    assert ever(shapes.load(90, 40, 60 * minutes, 60.0, 1), step_seconds=60.0) == []


@pytest.mark.parametrize(("every", "piece"), [(5, 0.8), (8, 1.5), (12, 1.5), (20, 2.0)])
def test_a_leak_in_rare_large_pieces_is_a_candidate_well_before_its_limit(every: int, piece: float) -> None:
    y = shapes.stairs(230, 60, every, piece, seed=1)
    limit = int(np.argmax(y >= 76e9))
    found = ever(y, step_seconds=60.0)
    assert 60 + 3 * every < found[0] < limit - 20
    assert len(found) > 0.6 * (limit - found[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [shapes.deploys, shapes.breathing], ids=["deploys", "breathing"])
def test_steps_that_end_or_come_back_are_no_stair(shape: Callable[[int, int], Floats], seed: int) -> None:
    assert ever(shape(200, seed), step_seconds=60.0) == []


def test_a_restart_is_no_candidate() -> None:
    assert ever(shapes.restart(120, 30, 1)) == []


def test_a_deploy_step_is_no_candidate() -> None:
    assert ever(shapes.deploy(80, 40, 1)) == []


def test_short_series_and_unknown_limits_are_left_alone() -> None:
    rise = shapes.leak(60, onset=20, duration=60, seed=1)[:40]
    assert not ask(rise[-9:]).candidate[0]
    assert not ask(rise, limit=np.nan).candidate[0]
    assert ask(rise).candidate[0]
