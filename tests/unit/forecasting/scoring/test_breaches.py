"""Episodes of breach forecasts: hit, false, averted, lost, open; and crossings nobody foretold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from forecasting.scoring.breaches import Breaches, Episode
from forecasting.scoring.said import Said, Who

S = 1_000_000_000
WHO = Who("c", "device/a")
OTHER = Who("c", "device/b")
EMPTY = np.empty(0)


def said(second: float, probability: float | None = 0.9, *, who: Who = WHO, withdrawn: str | None = None, lasts: float = 240) -> Said:
    at_ns = int(second * S)
    return Said(
        who, "n", "m", "By", "holt", at_ns, at_ns, 60 * S, at_ns + int(lasts * S), 30, 1.0, 2.0, probability, EMPTY, EMPTY, EMPTY, withdrawn
    )


def breaches(stepped_in: Callable[[Episode, int], bool] = lambda episode, until_ns: False) -> Breaches:
    return Breaches(0.3, stepped_in)


def test_a_forecast_that_comes_true_has_a_lead() -> None:
    b = breaches()
    for minute in range(20):
        b.take(said(60 * minute))
    b.crossed(WHO, 1200 * S, sudden=False)
    b.take(said(1230, None, withdrawn="breached"))
    assert (b.verdicts, b.missed, b.lead_seconds, b.recall, b.precision) == ({"hit": 1}, 0, 1200.0, 1, 1)


def test_breached_alone_is_a_crossing_and_the_grid_s_word_of_it_no_second_one() -> None:
    b = breaches()
    b.take(said(0))
    b.take(said(100, None, withdrawn="breached"))
    b.crossed(WHO, 150 * S, sudden=False)
    assert (b.verdicts, b.missed, b.crossings) == ({"hit": 1}, 0, 1)


@pytest.mark.parametrize("reason", ["receded", "recovered"])
def test_withdrawn_without_a_crossing_is_false_unless_somebody_stepped_in(reason: str) -> None:
    for stepped_in, verdict in ((False, "false"), (True, "averted")):
        b = breaches(lambda episode, until_ns, is_so=stepped_in: is_so)  # type: ignore[misc]  # the default binds the loop's value
        b.take(said(0))
        b.take(said(100, None, withdrawn=reason))
        assert b.verdicts == {verdict: 1}


def test_the_question_whether_somebody_stepped_in_is_about_the_time_it_stood() -> None:
    asked: list[tuple[int, int]] = []

    def stepped_in(episode: Episode, until_ns: int) -> bool:
        asked.append((episode.made_at_ns // S, until_ns // S))
        return False

    b = breaches(stepped_in)
    b.take(said(10))
    b.take(said(100, None, withdrawn="recovered"))
    assert asked == [(10, 220)]


@pytest.mark.parametrize("reason", ["signal_lost", "reshaped"])
def test_what_cannot_be_known_is_lost(reason: str) -> None:
    b = breaches()
    b.take(said(0))
    b.take(said(100, None, withdrawn=reason))
    assert (b.verdicts, b.precision) == ({"lost": 1}, None)


def test_what_is_not_repeated_expires() -> None:
    b = breaches()
    b.take(said(0))
    b.crossed(WHO, 1000 * S, sudden=False)
    assert (b.verdicts, b.missed) == ({"false": 1}, 1)


def test_what_stands_at_the_end_is_open_or_has_expired() -> None:
    b = breaches()
    b.take(said(0))
    b.finish(100 * S)
    assert b.verdicts == {"open": 1}
    b = breaches()
    b.take(said(0))
    b.finish(1000 * S)
    assert b.verdicts == {"false": 1}


def test_a_crossing_that_nobody_foretold_is_missed() -> None:
    b = breaches()
    b.take(said(0, who=OTHER))
    b.take(said(0, 0.1))
    b.crossed(WHO, 50 * S, sudden=True)
    assert (b.missed, b.missed_sudden, b.recall) == (1, 1, 0)


def test_a_crossing_of_one_is_not_another_s() -> None:
    b = breaches()
    b.take(said(0, who=OTHER))
    b.crossed(OTHER, 50 * S, sudden=False)
    b.crossed(WHO, 50 * S, sudden=False)
    b.finish(60 * S)
    assert (b.verdicts, b.missed, b.recall) == ({"hit": 1}, 1, 0.5)


def test_nothing_said_and_nothing_crossed_is_no_number() -> None:
    b = breaches()
    assert (b.recall, b.precision, b.lead_seconds) == (None, None, None)
