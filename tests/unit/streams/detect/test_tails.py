"""The tail of the negative-binomial distribution against the sum that defines it."""

import math

import numpy as np
import pytest

from streams.operators.detect.tails import log_tail, most_expected


def summed(count: int, mean: float, shape: float) -> float:
    """log P(K >= count), term by term from where the terms are largest on."""
    p = shape / (mean + shape)
    terms = [
        math.lgamma(k + shape) - math.lgamma(shape) - math.lgamma(k + 1) + shape * math.log(p) + k * math.log1p(-p)
        for k in range(count, count + 3000)
    ]
    most = max(terms)
    return most + math.log(math.fsum(math.exp(t - most) for t in terms))


@pytest.mark.parametrize(
    ("count", "mean", "shape"),
    [(1, 0.01, 0.1), (3, 0.5, 0.5), (10, 5.0, 5.0), (3, 5.0, 20.0), (50, 10.0, 20.0), (100, 100.0, 20.0), (5, 1e-3, 0.1), (40, 1e-4, 0.06)],
)
def test_it_is_the_sum_of_the_probabilities(count: int, mean: float, shape: float) -> None:
    found = log_tail(np.array([float(count)]), np.array([mean]), np.array([shape]))
    assert found[0] == pytest.approx(summed(count, mean, shape), rel=1e-6)


def test_nothing_counted_is_certain() -> None:
    assert log_tail(np.zeros(3), np.array([1e-9, 1.0, 1e9]), np.ones(3)).tolist() == [0, 0, 0]


def test_it_falls_with_the_count_however_far() -> None:
    found = log_tail(np.array([1.0, 10.0, 1e3, 1e6]), np.array([1e-3]), np.array([0.5]))
    assert (np.diff(found) < 0).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("mean", [1e-4, 1.0, 300.0])
def test_the_most_expected_has_the_surprise_that_was_asked_for(mean: float) -> None:
    most = most_expected(np.array([mean]), np.array([5.0]), 18.4)
    assert -log_tail(most, np.array([mean]), np.array([5.0]))[0] == pytest.approx(18.4, rel=1e-6)
