"""Scaled errors, coverage and pinball loss, by hand; sums that do not depend on how they are cut; what is unknown counts for nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from forecasting.scoring.accuracy import Accuracy, Errors, errors

NAN = float("nan")
Floats = NDArray[np.float64]


def judged(
    actual: list[float], *, p05: float = 8.0, p50: float = 10.0, p95: float = 12.0, before: tuple[float, ...] = (4, 5, 4, 5)
) -> Errors:
    h = len(actual)
    bands = np.array([np.full((1, h), q) for q in (p05, p50, p95)])
    return errors(bands, np.array([9.0]), np.array([actual]), np.array([before], dtype=np.float64))


def test_by_hand() -> None:
    found = judged([10.0, 13.0])
    assert found.scale[0] == 1.0
    assert found.mase[0] == pytest.approx(1.5)
    assert found.naive[0] == pytest.approx(2.5)
    assert found.inside[0].tolist() == [1.0, 0.0]
    # q * (y - f) above, (1 - q) * (f - y) below, mean of three quantiles and two steps
    losses = [0.05 * 2, 0.0, 0.05 * 2, 0.05 * 5, 0.5 * 3, 0.95 * 1]
    assert found.pinball[0] == pytest.approx(sum(losses) / 6)


def test_unknown_steps_are_left_out_and_mostly_unknown_forecasts_too() -> None:
    half, less = judged([10.0, NAN]), judged([10.0, NAN, NAN])
    assert half.judged.tolist() == [True]
    assert half.mase[0] == 0
    assert less.judged.tolist() == [False]
    total = Accuracy()
    total.add(less, [1, 2, 3])
    assert (total.forecasts, total.mase, total.coverage, total.pinball) == (0, None, None, None)


def test_a_series_that_did_not_move_has_no_scaled_error_but_a_coverage() -> None:
    total = Accuracy()
    total.add(judged([10.0, 10.0], before=(5.0, 5.0, 5.0)), [1, 2])
    assert (total.forecasts, total.unscaled, total.mase, total.mase_median, total.to_naive) == (1, 1, None, None, None)
    assert total.coverage == 1


def test_sums_are_those_of_the_values() -> None:
    total = Accuracy()
    for value in (10.0, 11.0, 13.0):
        total.add(judged([value, value]), [60, 120])
    assert total.mase == pytest.approx((0 + 1 + 3) / 3)
    assert total.mase_median == pytest.approx(1.0, rel=0.03)
    assert total.to_naive == pytest.approx((0 + 1 + 3) / (1 + 2 + 4))
    assert total.coverage == pytest.approx(2 / 3)
    assert {lead: (one.judged, one.inside) for lead, one in total.leads.items()} == {60: (3, 2), 120: (3, 2)}


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12), st.integers(0, 12))
def test_cut_anywhere_it_is_the_same(values: list[float], cut: int) -> None:
    whole, first, second = Accuracy(), Accuracy(), Accuracy()
    for i, value in enumerate(values):
        found = judged([value, 10.0])
        whole.add(found, [1, 2])
        (first if i < cut else second).add(found, [1, 2])
    first.merge(second)
    assert first.mase == pytest.approx(whole.mase)
    assert first.mase_median == whole.mase_median
    assert first.coverage == whole.coverage
    assert first.pinball == pytest.approx(whole.pinball)


def test_scale_does_not_matter() -> None:
    big = errors(
        np.array([np.full((1, 2), q * 1e9) for q in (8.0, 10.0, 12.0)]),
        np.array([9e9]),
        np.array([[10e9, 13e9]]),
        np.array([[4e9, 5e9, 4e9, 5e9]]),
    )
    assert big.mase[0] == pytest.approx(judged([10.0, 13.0]).mase[0])


def test_what_a_store_rounds_away_is_no_error() -> None:
    """A series that stands still at 41.599998474121094, stored as 41.6."""
    still = 41.599998474121094
    found = judged([still, still], p05=41.6, p50=41.6, p95=41.6)
    assert found.inside[0].tolist() == [1, 1]
    assert (found.pinball[0], found.mase[0]) == (0, 0)
