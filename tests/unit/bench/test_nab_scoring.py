"""NAB scoring: by hand on a small series of our own, and by what two published detectors are known to score on the corpus."""

import math

import numpy as np
import pytest

from bench import nab_corpus
from bench.nab_scoring import Labelled, Profile, Sheet

STANDARD = Profile(1.0, 1.0, 0.11)
ONE_WINDOW = Labelled(100, ((40, 49),))
"""Points 0-14 are not scored."""


def detecting(*points: int) -> np.ndarray:
    scores = np.zeros(100)
    scores[list(points)] = 1.0
    return scores


def scaled(position: float) -> float:
    return 2 / (1 + math.exp(5 * position)) - 1


def normal(total: float) -> float:
    """The one window missed is -1, hit at once +1."""
    return 100 * (total + 1) / 2


@pytest.mark.parametrize(
    ("points", "total"),
    [
        ((40,), 1.0),
        ((49,), scaled(-0.1) / scaled(-1.0)),
        ((45, 47, 49), scaled(-0.5) / scaled(-1.0)),
        ((20,), -1 - 0.11),
        ((5,), -1.0),
        ((58,), -1 + 0.11 * scaled(1.0)),
        ((78,), -1 - 0.11),
        ((20, 40, 99), 1 - 0.22),
    ],
    ids=["at once", "late", "the first counts", "false before", "in the probation", "false soon after", "false long after", "mixed"],
)
def test_a_detection_is_worth_what_the_formula_says(points: tuple[int, ...], total: float) -> None:
    assert Sheet([ONE_WINDOW]).at(detecting(*points), STANDARD, 0.5) == pytest.approx(normal(total))


def test_detecting_nothing_scores_0_and_perfectly_100() -> None:
    sheet = Sheet([ONE_WINDOW, Labelled(50, ())])
    silent, perfect = np.zeros(150), np.concatenate((detecting(40), np.zeros(50)))
    assert sheet.at(silent, STANDARD, 0.5) == 0.0
    assert sheet.at(perfect, STANDARD, 0.5) == pytest.approx(100.0)


def test_the_best_threshold_is_the_one_that_no_other_beats() -> None:
    scores = np.random.default_rng(3).random(100)
    sheet = Sheet([ONE_WINDOW])
    best, threshold = sheet.best(scores, STANDARD)
    assert best == max(0.0, *(sheet.at(scores, STANDARD, t) for t in scores))
    assert best == sheet.at(scores, STANDARD, threshold)


def test_equal_scores_are_detected_together() -> None:
    sheet = Sheet([ONE_WINDOW])
    thresholds, curve = sheet.curve(detecting(20, 40, 60), STANDARD)
    assert list(thresholds) == [1.0, 0.0]
    assert curve[0] == pytest.approx(normal(1 - 0.11 + 0.11 * scaled(11 / 9)))


def test_a_dearer_miss_makes_detections_worth_more() -> None:
    careless = Profile(1.0, 2.0, 0.11)
    assert Sheet([ONE_WINDOW]).at(detecting(20, 40), careless, 0.5) == pytest.approx(100 * (1 - 0.11 + 2) / 3)


@pytest.mark.skipif(nab_corpus.missing() is not None, reason=str(nab_corpus.missing()))
@pytest.mark.parametrize(("detector", "score"), nab_corpus.PUBLISHED.items())
def test_published_detectors_score_what_was_published(detector: str, score: float) -> None:
    series = nab_corpus.load()
    assert len(series) == 58
    sheet = Sheet([one.labelled for one in series])
    found, _ = sheet.best(nab_corpus.published(detector, series), nab_corpus.profiles()["standard"])
    assert round(found, 2) == score
