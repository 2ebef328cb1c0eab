"""Raised after rounds, withdrawn once, for the right reason."""

import pytest

from forecasting.standing import Hysteresis, Look, Standing

H = Hysteresis(0.5, 2, 0.3, 2)


def look(p: float | None, current: float | None = 70.0, lost: bool = False) -> Look:
    return Look(current, 76.0, p, lost=lost, fallen=1.0)


@pytest.mark.parametrize(
    ("looks", "verdicts"),
    [
        ([look(0.9)], ["none"]),
        ([look(0.9), look(0.9), look(0.8)], ["none", "publish", "publish"]),
        ([look(0.9), look(0.1), look(0.9)], ["none", "none", "none"]),
        ([look(0.9), look(0.9), look(0.4), look(0.4)], ["none", "publish", "publish", "publish"]),
        ([look(0.9), look(0.9), look(0.1), look(0.9), look(0.1)], ["none", "publish", "none", "publish", "none"]),
        ([look(0.9), look(0.9), look(0.1), look(0.1), look(0.1)], ["none", "publish", "none", "receded", "none"]),
        ([look(0.9), look(0.9), look(0.9, 76.5), look(0.9, 77.0), look(0.9, 77.0)], ["none", "publish", "breached", "none", "none"]),
        ([look(0.9), look(0.9), look(None, 2.0), look(None, 2.0), look(None, 2.0)], ["none", "publish", "none", "recovered", "none"]),
        ([look(0.9), look(0.9), look(None), look(None), look(0.9)], ["none", "publish", "none", "none", "publish"]),
        ([look(0.9), look(0.9), look(None, None, lost=True), look(None, None, lost=True)], ["none", "publish", "signal_lost", "none"]),
        ([look(0.9, 76.1), look(0.9, 76.1)], ["none", "none"]),
    ],
    ids=["once", "raised", "broken run", "between", "blink", "receded", "breached", "restarted", "unassessed", "lost", "already over"],
)
def test_life_of_a_standing_forecast(looks: list[Look], verdicts: list[str]) -> None:
    standing: Standing[str] = Standing(H)
    assert [standing.look("a", item) for item in looks] == verdicts


def test_nothing_is_kept_of_series_with_nothing_to_say() -> None:
    standing: Standing[str] = Standing(H)
    standing.look("a", look(0.9))
    standing.look("a", look(0.1))
    assert standing.keys() == []
    assert not standing._state
