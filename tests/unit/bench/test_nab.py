"""The quick part of the NAB bench, with a floor a point below what it measured, and its report."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bench import nab, nab_corpus
from bench.nab_detect import Detected, detect
from bench.nab_picture import simulated
from bench.nab_report import Found, figures, tables
from bench.nab_scoring import Profile
from bench.nab_speed import Speed, ensemble_rate
from streams.operators.detect.anomaly import ensemble

PROFILES = {"standard": Profile(1.0, 1.0, 0.11), "low_fp": Profile(1.0, 1.0, 0.22), "low_fn": Profile(1.0, 2.0, 0.11)}
FLOORS = {
    "standard": 76.8,
    "low_fp": 72.3,
    "low_fn": 80.8,
    "hardware_subset": 74.5,
    "transfer": 74.1,
    "standard_at_boundary": 76.6,
}
"""A point below what was measured on 2026-12-01 on the 43 series of at most 5,000 points."""


def labelled(name: str, found_at: int) -> tuple[nab_corpus.Series, Detected]:
    score = np.zeros(100)
    score[found_at] = 0.9
    series = nab_corpus.Series(name, np.arange(100) * 10**9, np.zeros(100), ((40, 49),))
    return series, Detected(score, np.zeros(100, np.int8), np.zeros(100), np.zeros(100))


def test_figures_are_flat_and_tell_the_subset_the_transfer_and_ratios() -> None:
    one, other = labelled("realAWSCloudwatch/a.csv", 40), labelled("realTweets/b.csv", 60)
    found = Found(
        [one[0], other[0]],
        [one[1], other[1]],
        PROFILES,
        {"knncad": 57.994, "windowedGaussian": 39.65},
        Speed(1000.0, 5000.0, 500.0, 10.0, 2000.0),
    )
    said = figures(found)
    assert said["hardware_subset"] == 100.0
    assert said["transfer"] == 0.0
    assert said["standard_at_boundary"] == pytest.approx(47.3, abs=0.5)
    assert (said["trust_knncad"], said["trust_windowed_gaussian"]) == (57.99, 39.65)
    assert (said["points_per_second_core"], said["ratio_to_hst"], said["ratio_to_python_ewma"]) == (1000, 100.0, 0.5)
    console = Console(record=True, width=160)
    console.print(tables(found, said, files=True))
    shown = console.export_text()
    assert all(word in shown for word in ("ARTime", "74.9", "selection", "realTweets/b.csv", "HalfSpaceTrees"))


def test_a_series_that_ends_early_is_judged_as_it_would_be_alone() -> None:
    random = np.random.default_rng(1)
    long, short = random.normal(0, 1, 260), random.normal(0, 1, 220)
    at_ns = (np.arange(260) + 1) * 10**10
    together = detect([(at_ns, long), (at_ns[:220], short)])
    alone = detect([(at_ns[:220], short)])
    np.testing.assert_array_equal(together[1].score, alone[0].score)
    assert len(together[0].score) == 260


def test_the_rate_is_measured_past_the_warm_up() -> None:
    ticks: list[int] = []
    assert ensemble_rate(4, 2, 3, lambda: ticks.append(1), settle=2) > 0
    assert len(ticks) == 5


def test_the_picture_shows_series_of_which_each_has_trouble() -> None:
    drawn = simulated()
    assert len(drawn) == 4
    assert all(one.trouble and np.isfinite(one.values).all() for one in drawn)


@pytest.mark.skipif(nab_corpus.missing() is not None, reason=str(nab_corpus.missing()))
@pytest.mark.slow
def test_the_quick_bench_holds_its_floors(tmp_path: Path) -> None:
    out = tmp_path / "nab.json"
    assert nab.main(["--quick", "--out", str(out)]) == 0
    said = json.loads(out.read_text(encoding="utf-8"))
    below = {name: said[name] for name, floor in FLOORS.items() if said[name] < floor}
    assert not below


def test_the_defaults_of_the_bench_are_the_shipped_ones() -> None:
    at_ns, values = (np.arange(200) + 1) * 10**10, np.random.default_rng(2).normal(0, 1, 200)
    np.testing.assert_array_equal(detect([(at_ns, values)])[0].score, detect([(at_ns, values)], ensemble.Options())[0].score)
