"""Which Xids are news, in each of the three ways a page tells of them."""

from __future__ import annotations

from collectors.dcgm.page import Xids
from collectors.dcgm.xid import News, XidMemory


def steps(*pages: Xids) -> list[list[News]]:
    memory = XidMemory()
    return [memory.step(page) for page in pages]


def test_a_gauge_that_appears_later_is_news_one_that_was_there_is_old() -> None:
    assert steps(Xids(31)) == [[News(31, 1, old=True)]]
    assert steps(Xids(), Xids(31), Xids(31)) == [[], [News(31, 1)], []]


def test_totals_count_from_the_last_look_and_anew_after_a_restart() -> None:
    assert steps(Xids(total={31: 5}), Xids(total={31: 7, 79: 1}), Xids(total={31: 7, 79: 1}), Xids(total={31: 2})) == [
        [News(31, 5, old=True)],
        [News(31, 2), News(79, 1)],
        [],
        [News(31, 2)],
    ]


def test_totals_win_over_windows_and_windows_over_the_gauge() -> None:
    first = Xids(31, windowed={31: 1}, total={})
    assert steps(first, Xids(79, windowed={31: 1, 79: 1}, total={79: 1})) == [[], [News(79, 1)]]
    assert steps(Xids(0, windowed={}), Xids(79, windowed={79: 2})) == [[], [News(79, 2)]]


def test_a_window_that_is_there_at_the_first_look_is_old() -> None:
    assert steps(Xids(windowed={31: 3}), Xids(windowed={31: 3})) == [[News(31, 3, old=True)], []]


def test_a_window_that_has_lines_only_while_it_has_xids() -> None:
    assert steps(Xids(0), Xids(31, windowed={31: 1}), Xids(31), Xids(31, windowed={31: 1})) == [[], [News(31, 1)], [], [News(31, 1)]]
