"""A stamp is moved only where it cannot be true, and then all that follow with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collectors.kernel.clock import SLACK_US, Clock

S = 1_000_000


def test_a_clock_that_is_right_is_left_alone() -> None:
    clock = Clock()
    for now in range(100, 200):
        clock.look(now * S)
        assert clock.when(now * S - S // 2) == now * S - S // 2
        clock.took_all()
    assert clock.off_us == 0


def test_lines_of_the_past_keep_their_stamps_at_the_first_look() -> None:
    clock = Clock()
    clock.look(9_000 * S)
    assert [clock.when(at * S) for at in (1, 500, 8_999)] == [1 * S, 500 * S, 8_999 * S]


def test_lines_keep_their_distances() -> None:
    clock = Clock()
    clock.look(1000 * S)
    clock.took_all()
    clock.look(1010 * S)
    assert [clock.when(at * S) for at in (400, 402, 405)] == [1000 * S, 1002 * S, 1005 * S]
    assert clock.off_us == 600 * S


def test_a_late_line_of_the_journal_is_no_sign() -> None:
    clock = Clock()
    clock.look(1000 * S)
    clock.took_all()
    clock.look(1001 * S)
    assert clock.when(996 * S) == 996 * S


def test_a_look_that_left_lines_says_nothing_of_their_age() -> None:
    clock = Clock()
    clock.look(1000 * S)
    clock.look(1001 * S)
    assert clock.when(10 * S) == 10 * S


@given(off=st.integers(-(10**6), 10**6), steps=st.lists(st.floats(0.1, 60), min_size=1, max_size=20))
def test_once_everything_was_read_no_line_is_far_outside_of_its_look(off: int, steps: list[float]) -> None:
    clock, now = Clock(), 10**7 * S
    clock.look(now)
    clock.took_all()
    for step in steps:
        before, now = now, now + round(step * S)
        clock.look(now)
        written = (before + now) // 2
        assert before - SLACK_US <= clock.when(written + off * S) <= now + SLACK_US
        clock.took_all()
