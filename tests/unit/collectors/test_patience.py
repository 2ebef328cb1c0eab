"""How long a process may be silent: a driver that wakes slowly, or is slow at each card, does not hang; one that stands still does."""

from __future__ import annotations

from collectors.patience import START_SECONDS, Patience
from collectors.whereabouts import Place


def test_a_driver_may_take_its_time_to_start() -> None:
    """nvmlInit wakes eight cards that nobody holds open, seconds each; the plugin's first word comes before it."""
    patience = Patience(10.0, 100.0)
    patience.word(101.0, answers=False)
    assert patience.over(None, 101.0 + START_SECONDS - 1) is None
    assert patience.over(None, 101.0 + START_SECONDS) == START_SECONDS


def test_a_driver_that_answered_once_may_not() -> None:
    patience = Patience(10.0, 100.0)
    patience.word(101.0)
    assert patience.over(None, 110.9) is None
    assert patience.over(None, 111.0) == 10.0


def test_going_on_to_the_next_card_is_a_sign_of_life() -> None:
    patience = Patience(10.0, 0.0)
    patience.word(0.0, answers=False)
    for index in range(8):
        assert patience.over(Place(str(index)), 9.0 * index) is None
    assert patience.over(Place("7"), 72.9) is None
    assert patience.over(Place("7"), 73.0) == 10.0, "at a card it is the card that hangs, at the start too"


def test_a_long_limit_holds_at_the_start_too() -> None:
    patience = Patience(300.0, 0.0)
    assert patience.over(None, 299.0) is None
    assert patience.over(None, 300.0) == 300.0


def test_time_in_which_nobody_listened_is_no_silence() -> None:
    """SIGSTOP of the agent, or a paused machine: the first look afterwards comes before the pipe is read."""
    patience = Patience(10.0, 0.0)
    patience.word(0.0)
    patience.stood_still(29.0, 30.0)
    assert patience.over(None, 30.0) is None
    assert patience.over(None, 39.0) == 10.0


def test_nor_is_it_credit_for_a_hang_to_come() -> None:
    patience = Patience(10.0, 0.0)
    patience.word(3600.0)
    patience.stood_still(3600.0, 3600.0)
    assert patience.over(None, 3610.0) == 10.0
