"""Reads fall on whole multiples of the interval; slow fields come in every n-th read."""

from __future__ import annotations

import pytest

from collectors.worker import FAST, FAST_AND_SLOW, Schedule

SECOND = 10**9


def test_slow_fields_are_due_at_first_and_then_every_nth_time() -> None:
    schedule = Schedule(SECOND, 3)
    assert [schedule.due() for _ in range(7)] == [FAST_AND_SLOW, FAST, FAST, FAST_AND_SLOW, FAST, FAST, FAST_AND_SLOW]


@pytest.mark.parametrize(
    ("now_ns", "wait_ns"), [(10 * SECOND, SECOND), (10 * SECOND + 1, SECOND - 1), (11 * SECOND - 1, 1)], ids=["at", "after", "before"]
)
def test_it_waits_for_the_next_multiple(now_ns: int, wait_ns: int) -> None:
    assert Schedule(SECOND, 1).wait_ns(now_ns) == wait_ns


def test_waking_a_little_early_does_not_read_twice() -> None:
    schedule = Schedule(SECOND, 1)
    assert schedule.wait_ns(10 * SECOND + 5) == SECOND - 5
    assert schedule.wait_ns(11 * SECOND - 5) == SECOND + 5
    assert schedule.wait_ns(12 * SECOND + 1) == SECOND - 1


def test_a_clock_that_was_set_back_does_not_stop_the_reads() -> None:
    schedule = Schedule(SECOND, 1)
    schedule.wait_ns(1000 * SECOND)
    assert schedule.wait_ns(10 * SECOND + 5) == SECOND - 5


def test_ticks_that_passed_during_a_read_are_counted() -> None:
    schedule = Schedule(SECOND, 1)
    times = [10.0, 10.999, 14.2, 15.0, 3.0]  # the last: the clock was set back
    assert [schedule.skipped(int(t * SECOND), int(abs(t) * SECOND)) for t in times] == [0, 0, 2, 0, 0]


def test_a_clock_that_is_set_skips_no_tick() -> None:
    """A host whose battery is empty boots in 1970 and is set by NTP: 1.8e9 ticks were never missed."""
    schedule = Schedule(SECOND, 1)
    times = [(100.0, 5.0), (101.0, 6.0), (1.8e9, 7.0), (1.8e9 + 1, 8.0), (200.0, 9.0), (3800.0, 12.0)]
    assert [schedule.skipped(int(wall * SECOND), int(up * SECOND)) for wall, up in times] == [0, 0, 0, 0, 0, 2]
