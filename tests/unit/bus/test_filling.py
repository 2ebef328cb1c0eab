"""When a spool that grows will be full."""

import pytest

from xpulse.bus.filling import LEAST_SECONDS, WINDOW_SECONDS, Filling

MIB = 2**20


def test_a_steady_outage_is_foretold_after_half_a_minute() -> None:
    filling = Filling()
    found = [filling.take(float(s), s * MIB, 3600 * MIB) for s in range(600)]
    assert found[: int(LEAST_SECONDS)] == [None] * int(LEAST_SECONDS)
    assert found[120] == pytest.approx(3480, rel=0.01)
    assert found[599] == pytest.approx(3001, rel=0.01)


def test_the_rate_is_that_of_late() -> None:
    filling = Filling()
    size = 0
    for s in range(2000):
        size += 10 if s < 1000 else 1000
        found = filling.take(float(s), size, 10_000_000)
    assert found == pytest.approx((10_000_000 - size) / 1000, rel=0.02)
    assert len(filling._seen) <= WINDOW_SECONDS / 5 + 2


def test_what_does_not_grow_or_is_sent_is_never_full() -> None:
    filling = Filling()
    assert [filling.take(float(s), 0, 100) for s in range(200)] == [None] * 200
    for s in range(200, 300):
        filling.take(float(s), s, 1000)
    assert filling.take(300.0, 50, 1000) is None  # being sent
    assert filling.take(340.0, 40, 1000) is None


def test_a_full_one_says_so() -> None:
    assert Filling().take(0.0, 100, 100) == 0.0
