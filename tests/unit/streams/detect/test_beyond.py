"""Whether a temperature lies above what the power of its card explains."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streams.operators.detect import beyond
from streams.operators.detect.beyond import Loads
from streams.operators.detect.table import Table

SECOND = 1_000_000_000
OPTIONS = Loads()
WARM = OPTIONS.warm_up_points
FAULT, POINTS = 700, 760

Floats = NDArray[np.float64]


def cards(n: int = 4, seed: int = 0, points: int = POINTS, lowest: float = 0.2) -> tuple[Floats, Floats]:
    """Temperatures and powers (points, cards) of loads that wander and now and then jump; heat follows in 12 s."""
    rng = np.random.default_rng(seed)
    wave = 0.5 + 0.3 * np.sin(np.arange(points)[:, None] / 40 + np.arange(n))
    jumps = np.repeat(rng.uniform(-0.2, 0.2, (points // 25 + 1, n)), 25, axis=0)[:points]
    power = 118 + 545 * np.clip(wave + jumps + rng.normal(0, 0.02, (points, n)), lowest, 1)
    core = np.empty_like(power)
    core[0] = 33 + 0.05 * power[0]
    for k in range(1, points):
        core[k] = core[k - 1] + (1 - np.exp(-10 / 12)) * (33 + 0.05 * power[k] - core[k - 1])
    return core + rng.normal(0, 0.2, core.shape), power


def scores(temperature: Floats, power: Floats, least: float = 8.0, at_ns: NDArray[np.int64] | None = None) -> Floats:
    table = Table()
    beyond.define(table, 1)
    rows = np.array([table.new_row() for _ in range(temperature.shape[1])], np.intp)
    when = (np.arange(len(temperature)) + 1) * 10 * SECOND if at_ns is None else at_ns
    found = [
        beyond.score(table, rows, np.full(len(rows), when[k]), temperature[k, :, None], power[k, :, None], np.array([least]), OPTIONS).score
        for k in range(len(temperature))
    ]
    return np.stack(found)[:, :, 0]


def test_load_alone_is_never_odd_and_first_the_line_is_learnt() -> None:
    found = scores(*cards())
    assert np.isnan(found[:WARM]).all()
    assert np.nanmax(found) < 0.5


def test_cards_that_all_warm_at_little_load_are_odd_though_none_is_hot() -> None:
    temperature, power = cards()
    power[FAULT - 60 :] = 160.0
    temperature[FAULT - 60 :] = 41.0
    temperature[FAULT:] += np.minimum(np.arange(POINTS - FAULT), 18)[:, None]
    assert temperature[FAULT:].max() < temperature[:FAULT].max()
    found = scores(temperature, power)
    assert np.nanmax(found[:FAULT]) < 0.5
    assert (found[FAULT + 12 :] > 0.5).all()


def test_a_card_that_only_idled_says_nothing_of_how_warm_it_is_when_busy() -> None:
    rng = np.random.default_rng(1)
    power = np.where(np.arange(POINTS) < FAULT, 118.0, 600.0)[:, None] + rng.normal(0, 0.5, (POINTS, 1))
    temperature = np.where(np.arange(POINTS) < FAULT, 35.0, 66.0)[:, None] + rng.normal(0, 0.2, (POINTS, 1))
    assert np.nanmax(scores(temperature, power)) < 0.5


def test_what_is_not_known_says_nothing_and_is_not_learnt() -> None:
    temperature, power = cards(2)
    power[400:450, 0] = np.nan
    temperature[500:520, 1] = np.nan
    found = scores(temperature, power)
    assert np.isnan(found[410:450, 0]).all()
    assert np.isnan(found[510:520, 1]).all()
    # what comes after a gap is settled first: the load before it is not known
    assert np.isnan(found[450 : 450 + OPTIONS.settle_points, 0]).all()
    assert np.nanmax(found) < 0.5


def test_a_clock_that_is_set_back_starts_no_finding() -> None:
    temperature, power = cards(1)
    when = (np.arange(POINTS) + 1000) * 10 * SECOND
    when[FAULT:] -= 5000 * SECOND
    found = scores(temperature, power, at_ns=when)
    assert np.isnan(found[FAULT : FAULT + OPTIONS.settle_points]).all()
    assert np.nanmax(found) < 0.5


def test_what_lasts_becomes_usual() -> None:
    temperature, power = cards(1, points=4000)
    temperature[FAULT:] += 12.0
    found = scores(temperature, power)[:, 0]
    assert (found[FAULT + 1 : FAULT + 90] > 0.5).mean() > 0.95
    assert (found[-100:] < 0.5).all()


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 100), st.sampled_from([1e9, 1e-9]), st.sampled_from([1e6, 1e-6]))
def test_scores_do_not_depend_on_units(seed: int, scale: float, load_scale: float) -> None:
    temperature, power = cards(2, seed)
    temperature[FAULT:] += 10.0
    found = scores(temperature, power, least=8.0)
    other = scores(scale * temperature, load_scale * power, least=8.0 * scale)
    np.testing.assert_allclose(found, other, rtol=1e-6)
    assert (np.nan_to_num(found) >= 0).all()
    assert (np.nan_to_num(found) <= 1).all()


@pytest.mark.parametrize("order", [[2, 0], [1]])
def test_which_cards_come_together_does_not_matter(order: list[int]) -> None:
    temperature, power = cards(3)
    np.testing.assert_array_equal(scores(temperature, power)[:, order], scores(temperature[:, order], power[:, order]))
