"""Time passes only as far as the slowest owned partition allows."""

from schemas.flow import Partition, tick_time

A, B = Partition("t", 0), Partition("t", 1)


def test_wall_clock_only_without_lag() -> None:
    assert tick_time([A, B], {}, {A: 0, B: 0}, 100) == 100


def test_the_lowest_watermark_where_there_is_lag() -> None:
    assert tick_time([A, B], {A: 40, B: 70}, {A: 3, B: 0}, 100) == 40
    assert tick_time([A, B], {A: 40, B: 30}, {A: 3, B: 9}, 100) == 30


def test_unknown_holds_time_back() -> None:
    assert tick_time([A, B], {A: 40}, {A: 0, B: 5}, 100) is None
    assert tick_time([A], {}, {}, 100) is None
    assert tick_time([], {}, {}, 100) is None
