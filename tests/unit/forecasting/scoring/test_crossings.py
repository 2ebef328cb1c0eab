"""Crossings: once however a value flickers, interpolated in time, and told from jumps; unknown is neither side."""

from __future__ import annotations

import numpy as np
import pytest

from forecasting.scoring.crossings import Crossing, crossings

NAN = float("nan")


def found(values: list[float], *, limit: float = 10.0, sign: int = 1, since: int = 0, first: int = 0) -> list[Crossing]:
    y = np.array([values])
    return crossings(y, np.array([limit]), sign, first=first, step_ns=100, since=since, until=first + y.shape[1])


RISE = [float(v) for v in np.linspace(0, 12, 25)]


def test_a_rise_crosses_once_and_between_its_steps() -> None:
    (one,) = found(RISE)
    # 10 lies two thirds of the way from value 20 to value 21; a bin's value stands at its end
    assert one.at_ns == pytest.approx((20 + 1) * 100 + (10 - RISE[20]) / 0.5 * 100, abs=1)
    assert not one.sudden


def test_a_limit_that_is_crossed_from_above() -> None:
    (one,) = found([-v for v in RISE], limit=-10.0, sign=-1)
    assert one.at_ns == found(RISE)[0].at_ns


def test_a_jump_is_sudden() -> None:
    (one,) = found([1.0, 1.1] * 10 + [20.0])
    assert one.sudden


def test_a_value_that_flickers_around_its_limit_crosses_once() -> None:
    assert len(found([*RISE, 9.0, 11.0, 9.5, 10.5, 9.0, 11.0])) == 1


def test_after_a_rest_it_is_a_new_crossing() -> None:
    assert len(found([*RISE, *[5.0] * 12, 9.0, 9.5, 11.0])) == 2


def test_what_begins_beyond_the_limit_never_crossed_it() -> None:
    assert found([11.0] * 20) == []
    assert found([9.0, 11.0] + [11.0] * 10) == []  # one good value is too little to know


def test_gaps_prove_nothing() -> None:
    assert len(found([*RISE[:18], NAN, NAN, *RISE[20:]])) == 1
    assert found([NAN] * 20 + [11.0]) == []
    assert found(RISE, limit=NAN) == []


def test_only_the_asked_bins_count_and_bins_have_their_place() -> None:
    assert found(RISE, since=22) == []
    (one,) = found(RISE, first=1000)
    assert one.at_ns == found(RISE)[0].at_ns + 1000 * 100


def test_a_stretch_after_the_other_finds_what_the_whole_does() -> None:
    y = np.array([[*RISE, *[5.0] * 12, 9.0, 9.5, 11.0]])
    whole = crossings(y, np.array([10.0]), 1, first=0, step_ns=100, since=0, until=y.shape[1])
    parts = [one for at in range(y.shape[1]) for one in crossings(y, np.array([10.0]), 1, first=0, step_ns=100, since=at, until=at + 1)]
    assert parts == whole
