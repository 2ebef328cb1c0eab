"""After a pause no time passes until the world has been heard again."""

from schemas.wake import Wake

S = 1_000_000_000


def test_regular_ticks_are_awake() -> None:
    wake = Wake()
    assert all(wake.awake(n * S) for n in range(100, 130))


def test_a_gap_holds_time_until_it_has_settled() -> None:
    wake = Wake()
    assert wake.awake(100 * S)
    assert not wake.awake(123 * S)
    assert not wake.awake(127 * S)
    assert wake.awake(128 * S)
