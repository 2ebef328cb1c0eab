"""A 32-bit byte counter is unwrapped by an independent figure of what moved, or is absent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.nvidia.counters import Unwrapped
from schemas.values import Absent

SPAN = 2**32


@given(
    start=st.integers(0, SPAN - 1),
    moves=st.lists(st.tuples(st.integers(0, 100 * 2**30), st.floats(-(2**30), 2**30)), max_size=20),
)
def test_it_follows_the_true_count_whatever_number_of_wraps(start: int, moves: list[tuple[int, float]]) -> None:
    counter, true = Unwrapped(), start
    assert counter.begin(start) == start
    for moved, wrong_by in moves:
        true += moved
        assert counter.step(true % SPAN, moved + wrong_by) == true


def test_without_a_figure_it_is_absent() -> None:
    counter = Unwrapped()
    assert [counter.step(raw, None) for raw in (5, 6)] == [Absent("not_supported")] * 2


def test_it_never_falls_after_a_gap() -> None:
    counter = Unwrapped()
    counter.begin(100)
    before = counter.step(10**9, 1e9)
    counter.step(2 * 10**9, None)
    after = counter.step(3 * 10**9, 1e9)
    assert (before, after) == (10**9, 3 * 10**9)


@pytest.mark.parametrize("raw", [0, 7, SPAN - 1])
def test_standing_still_adds_nothing(raw: int) -> None:
    counter = Unwrapped()
    counter.begin(raw)
    assert counter.step(raw, 0.0) == raw
