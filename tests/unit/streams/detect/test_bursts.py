"""Bursts of error counters: what is one, what is none, and what resets, faults and absences do to the growth."""

import numpy as np
import pytest
from numpy.typing import NDArray

from streams.operators.detect import bursts
from streams.operators.detect.bursts import Burst, Bursts
from streams.operators.detect.table import Table

SECOND = 1_000_000_000
MINUTE = 60
OPTIONS = Bursts()
HOURS_6 = [0.0] * 360


class Counter:
    """One counter of one card, read when asked."""

    def __init__(self) -> None:
        self.table = Table()
        bursts.define(self.table, 1)
        self.rows: NDArray[np.intp] = np.array([self.table.new_row()], np.intp)
        self.seconds = 1_000_000.0

    def read(self, value: float, *, after: float = MINUTE, epoch: int = 1) -> Burst:
        self.seconds += after
        at = np.array([round(self.seconds * SECOND)])
        return bursts.score(self.table, self.rows, at, np.array([epoch]), np.array([[value]]), OPTIONS)

    def reads(self, values: list[float], **how: float) -> list[float]:
        return [float(self.read(v, **how).score[0, 0]) for v in values]  # type: ignore[arg-type]  # a table of keywords


@pytest.fixture
def clean() -> Counter:
    counter = Counter()
    counter.reads(HOURS_6)
    return counter


@pytest.mark.parametrize("errors", [1, 2, 5])
def test_a_first_error_on_a_clean_counter_is_no_burst(clean: Counter, errors: int) -> None:
    assert clean.reads([errors])[0] < 0.5


@pytest.mark.parametrize("errors", [25, 60, 10_000])
def test_many_at_once_are(clean: Counter, errors: int) -> None:
    found = clean.read(errors)
    assert found.score[0, 0] > 0.5
    assert (found.grown[0, 0], found.seconds[0, 0]) == pytest.approx((errors, 60))
    assert 5 < found.high[0, 0] < 25


def test_it_is_over_with_the_next_reading_without_errors(clean: Counter) -> None:
    assert clean.reads([10_000, 10_000])[1] < 0.35


def test_growth_too_slow_for_one_reading_adds_up(clean: Counter) -> None:
    found = clean.reads([float(6 * n) for n in range(1, 16)])
    assert max(found[:2]) < 0.5
    assert max(found) > 0.5


def test_a_counter_that_always_counts_some_needs_a_multiple() -> None:
    usual = np.cumsum(np.random.default_rng(3).poisson(6.0, 200)).astype(float)
    counter = Counter()
    assert max(x for x in counter.reads(usual.tolist()) if x == x) < 0.5
    assert counter.reads([usual[-1] + 25.0])[0] < 0.5
    assert counter.reads([usual[-1] + 25.0 + 200.0])[0] > 0.5


def test_clean_counters_that_err_in_clusters_stay_quiet() -> None:
    rng = np.random.default_rng(1)
    n = 50
    rate = 10 ** rng.uniform(-6, -3, n)
    table = Table()
    bursts.define(table, 1)
    rows = np.array([table.new_row() for _ in range(n)], np.intp)
    counts = np.zeros(n)
    false = 0
    for minute in range(300):
        counts += rng.poisson(rate * 60) * rng.choice([1, 1, 1, 3, 8], n)
        at = np.full(n, (minute + 1) * 60 * SECOND)
        false += int((bursts.score(table, rows, at, np.ones(n, np.int64), counts[:, None], OPTIONS).score > 0.5).sum())
    assert false <= 1


def test_nothing_is_said_before_there_is_a_history() -> None:
    found = Counter().reads([0.0, 500.0, 1000.0, *[1000.0 + n for n in range(20)]])
    assert np.isnan(found[:10]).all()
    assert not np.isnan(found[-1])


@pytest.mark.parametrize(("after", "fires"), [(MINUTE, True), (30 * 3600, False)], ids=["a_minute", "thirty_hours"])
def test_growth_is_judged_by_the_time_in_which_it_came(after: float, fires: bool) -> None:
    usual = Counter()
    usual.reads([float(n // 10) for n in range(1, 720)])
    assert (usual.reads([71.0 + 60.0], after=after)[0] > 0.5) is fires


def test_a_reset_in_a_new_epoch_shows_what_came_since() -> None:
    counter = Counter()
    counter.reads([1000.0] * 360)
    assert counter.read(0.0, epoch=2).score[0, 0] < 0.1
    assert counter.read(80.0, epoch=2).score[0, 0] > 0.5
    counter.reads([80.0] * 60, epoch=2)
    assert counter.read(70.0, epoch=3).grown[0, 0] == 70.0


def test_a_counter_that_goes_back_within_an_epoch_says_nothing_of_that_time(clean: Counter) -> None:
    clean.reads([40.0, 40.0])
    before = clean.table["burst"].copy()
    assert clean.read(3.0).score[0, 0] < 0.35
    changed = clean.table["burst"] != np.nan_to_num(before)
    assert changed[0, :11, 0].sum() == 2, "of what is learnt only what it showed last, and when"
    assert clean.reads([4.0])[0] < 0.35


def test_what_is_not_read_changes_nothing_and_a_score_is_held_for_three_minutes(clean: Counter) -> None:
    assert clean.reads([100.0])[0] > 0.5
    before = clean.table["burst"].copy()
    nan = float("nan")
    held = clean.reads([nan, nan, nan, nan])
    np.testing.assert_array_equal(clean.table["burst"], before)
    assert [x > 0.5 for x in held[:3]] == [True] * 3
    assert np.isnan(held[3])


def test_counters_of_a_row_are_apart() -> None:
    table = Table()
    bursts.define(table, 2)
    rows = np.array([table.new_row()], np.intp)
    for n in range(100):
        values = np.array([[0.0, 500.0 if n == 99 else 0.0]])
        found = bursts.score(table, rows, np.array([(n + 1) * 60 * SECOND]), np.array([1]), values, OPTIONS)
    assert (found.score > 0.5).tolist() == [[False, True]]
