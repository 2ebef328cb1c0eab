"""Who held a device when."""

from __future__ import annotations

from schemas.telemetry import v1
from streams.operators.attribute import History
from tests.unit.streams.attribute.build import allocation, at, snapshot


def pods(history: History, seconds: float) -> list[str] | None:
    holders = history.holders("d0", at(seconds))
    return None if holders is None else [v1.Attributed.FromString(h.row).workload.pod for h in holders]


def test_an_interval_holds_from_its_start_until_before_its_end() -> None:
    history = History()
    history.take(snapshot(10, allocation("a", 0, 5), allocation("b", 5)))
    assert [pods(history, t) for t in (-1, 0, 4.999, 5, 10)] == [[], ["a"], ["a"], ["b"], ["b"]]


def test_an_older_snapshot_changes_nothing() -> None:
    history = History()
    history.take(snapshot(10, allocation("b", 5)))
    assert not history.take(snapshot(4, allocation("a", 0)))
    assert pods(history, 4) == []


def test_before_its_memory_nothing_is_known_but_a_holder_that_was_there_already() -> None:
    history = History()
    history.take(snapshot(0, allocation("old", -2000)))
    assert pods(history, -1000) == ["old"]
    assert history.holders("d1", at(-1000)) is None
    assert history.holders("d1", at(-800)) == []


def test_an_interval_that_vanished_without_an_end_ended_at_the_snapshot_that_lacks_it() -> None:
    history = History()
    history.take(snapshot(0, allocation("a", 0)))
    history.take(snapshot(10))
    assert [pods(history, t) for t in (9, 10)] == [["a"], []]


def test_ended_intervals_are_forgotten_after_a_quarter_of_an_hour() -> None:
    history = History()
    history.take(snapshot(10, allocation("a", 0, 5)))
    history.take(snapshot(100))
    assert pods(history, 4) == ["a"]
    history.take(snapshot(10 + 15 * 60))
    assert pods(history, 4) is None


def test_a_corrected_end_replaces_the_former_one() -> None:
    history = History()
    history.take(snapshot(10, allocation("a", 0, 9)))
    history.take(snapshot(20, allocation("a", 0, 5)))
    assert pods(history, 7) == []


def test_a_gap_longer_than_the_memory_is_not_called_idle() -> None:
    history = History()
    history.take(snapshot(0))
    history.take(snapshot(2000))
    assert pods(history, 500) is None
    assert pods(history, 1500) == []
