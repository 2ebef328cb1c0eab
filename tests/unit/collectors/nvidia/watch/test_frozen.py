"""An energy counter that stands still while power is drawn is noticed; an idle one, a missing one or a slow one is not."""

from __future__ import annotations

from collectors.nvidia.watch.frozen import Frozen


def test_the_value_of_the_report_for_ten_readings() -> None:
    """D64, amdsmi#38: 5198685762204 ten times in a row during a run."""
    frozen = Frozen()
    said = [frozen.step("a", 5_198_685_762.204, 300.0, at * 5.0) for at in range(10)]
    assert said == [None] * 6 + ["frozen"] + [None] * 3
    assert frozen.step("a", 5_198_685_763.0, 300.0, 50.0) == "moves"
    assert frozen.step("a", 5_198_685_763.0, 300.0, 51.0) is None


def test_a_counter_that_moves_is_well() -> None:
    frozen = Frozen()
    assert [frozen.step("a", at * 300.0, 300.0, float(at)) for at in range(120)] == [None] * 120


def test_a_card_that_draws_nothing_need_not_count() -> None:
    frozen = Frozen()
    assert [frozen.step("a", 7.0, 0.0, float(at)) for at in range(120)] == [None] * 120


def test_readings_that_are_missing_prove_nothing() -> None:
    frozen = Frozen()
    frozen.step("a", 7.0, 300.0, 0.0)
    assert [frozen.step("a", None, 300.0, 20.0), frozen.step("a", 7.0, None, 40.0)] == [None, None]
    assert frozen.step("a", 7.0, 300.0, 60.0) is None
    assert frozen.step("b", None, None, 60.0) is None


def test_cards_are_told_apart_and_forgotten() -> None:
    frozen = Frozen()
    for at in range(40):
        frozen.step("a", 7.0, 300.0, float(at))
        frozen.step("b", at * 1.0, 300.0, float(at))
    frozen.forget(frozenset({"b"}))
    assert frozen.step("a", 7.0, 300.0, 41.0) is None
