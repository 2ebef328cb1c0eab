"""How often costly calls are made: rarer when one is slow, back step by step, and never silently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.nvidia.watch.budget import Limits, Pace
from collectors.nvidia.watch.said import Said

LIMITS = Limits(interval_seconds=10)


def test_the_first_round_is_due_and_the_next_an_interval_later() -> None:
    pace = Pace(LIMITS)
    assert pace.due(5.0)
    assert pace.done(5.0, 0.001) is None
    assert [pace.due(at) for at in (6.0, 14.0, 14.5, 15.0)] == [False, False, True, True]


def test_a_slow_call_doubles_the_interval_up_to_the_longest() -> None:
    pace = Pace(LIMITS)
    changes = [pace.done(0.0, 0.2) for _ in range(7)]
    assert changes == ["backed_off", *[None] * 6]
    assert pace.interval_seconds == 300
    assert pace.slow_rounds == 7


def test_three_quick_rounds_halve_it_and_a_slow_one_between_begins_anew() -> None:
    pace = Pace(LIMITS)
    pace.done(0.0, 0.2)
    pace.done(0.0, 0.2)
    assert [pace.done(0.0, seconds) for seconds in (0.0, 0.0, 0.2, 0.0, 0.0, 0.0)] == [None] * 6
    assert pace.interval_seconds == 40
    assert [pace.done(0.0, 0.0) for _ in range(6)] == [None, None, None, None, None, "recovered"]
    assert pace.interval_seconds == 10


def test_what_the_back_off_puts_off_is_counted_once_an_interval() -> None:
    pace = Pace(LIMITS)
    pace.done(0.0, 0.2)
    assert [pace.due(float(at)) for at in range(1, 20)] == [False] * 18 + [True]
    assert pace.put_off == 1


def test_what_just_waits_its_turn_is_not_put_off() -> None:
    pace = Pace(LIMITS)
    pace.done(0.0, 0.0)
    assert [pace.due(float(at)) for at in range(1, 9)] == [False] * 8
    assert pace.put_off == 0


def test_an_interval_that_is_longer_than_the_longest_is_kept() -> None:
    pace = Pace(Limits(interval_seconds=600, longest_seconds=300))
    assert pace.done(0.0, 9.0) is None
    assert pace.interval_seconds == 600


@given(st.lists(st.floats(0, 10), max_size=60))
def test_the_interval_stays_within_its_bounds(slowest: list[float]) -> None:
    pace = Pace(LIMITS)
    said = [change for seconds in slowest if (change := pace.done(0.0, seconds)) is not None]
    assert 10 <= pace.interval_seconds <= 300
    assert said == ["backed_off", "recovered"] * (len(said) // 2) + ["backed_off"] * (len(said) % 2)


@pytest.mark.parametrize("what", ["a", ("a", 1)])
def test_a_thing_is_said_once_while_it_lasts(what: object) -> None:
    said = Said()
    assert [said.first(what), said.first(what), said.over(what), said.over(what), said.first(what)] == [True, False, True, False, True]
