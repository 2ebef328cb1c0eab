"""How what was raised is compared with what was wrong."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from bench.fleet_plan import Truth
from bench.fleet_report import tables
from bench.fleet_run import Day, Fired, Raised
from bench.fleet_score import GRACE_SECONDS, Score

ONE = frozenset({"device/a", "node/c/n"})
HOT = Truth("thermal", 1000, 2000, ONE, ONE | {"device/b"})
LATER = Truth("ghost", 1500, 2500, frozenset({"device/b"}), frozenset({"device/b", "device/a"}))


def raised(seconds: float, entity: str = "device/a", rule: str = "hot", **more: Any) -> Raised:
    given: dict[str, Any] = {"metric": "", "detector": "", "anomaly": False, "shadow": False, "value": 0.0, "score": 0.0} | more
    return Raised(seconds, rule, entity, **given)


def judged(*found: Raised, truths: tuple[Truth, ...] = (HOT,), fired: tuple[Fired, ...] = ()) -> Score:
    score = Score()
    score.add_broken(1, Day(list(found), list(fired)), truths)
    return score


def test_a_finding_about_what_it_befell_finds_the_fault_with_its_delay() -> None:
    figures = judged(raised(1030), raised(1020, rule="other"), raised(1100)).figures()
    assert (figures["recall"], figures["precision"], figures["median_delay_s"]) == (1, 1, 20)
    assert figures["thermal_recall"] == 1


@pytest.mark.parametrize(("seconds", "matched"), [(999, 0), (1000, 1), (2000 + GRACE_SECONDS, 1), (2001 + GRACE_SECONDS, 0)])
def test_a_finding_counts_while_the_fault_acts_and_soon_after(seconds: float, matched: int) -> None:
    figures = judged(raised(seconds)).figures()
    assert (figures["recall"], figures["precision"]) == (matched, matched)


def test_what_only_feels_a_fault_does_not_find_it_and_is_not_false() -> None:
    figures = judged(raised(1100, "device/b")).figures()
    assert (figures["recall"], figures["precision"]) == (0, 1)


def test_a_finding_elsewhere_is_false() -> None:
    figures = judged(raised(1100), raised(1100, "device/x"), raised(1200, "device/x")).figures()
    assert figures["precision"] == pytest.approx(1 / 3, abs=1e-3)


def test_of_two_faults_it_is_put_down_to_the_one_that_befell_it() -> None:
    score = judged(raised(1600, "device/a"), raised(1700, "device/b"), truths=(HOT, LATER))
    assert [(c.truth.kind, c.delay_seconds) for c in score.cases] == [("thermal", 600), ("ghost", 200)]


def test_shadows_are_told_to_nobody_but_count_for_the_detectors() -> None:
    score = judged(raised(1100, anomaly=True, shadow=True), raised(1100, "device/x", anomaly=True, shadow=True))
    score.add_clean(
        1, Day([raised(5, anomaly=True, shadow=True), raised(6, shadow=True), raised(7), raised(8, anomaly=True)], explained=2), 50.0
    )
    figures = score.figures()
    assert (figures["recall"], figures["anomaly_recall"], figures["precision"]) == (0, 1, None)
    assert figures["false_per_100_device_days"] == 4
    assert figures["false_anomalies_per_100_device_days"] == 4
    assert figures["explained"] == 2


def test_one_incident_is_one_however_many_alerts() -> None:
    fired = tuple(Fired(1100 + i, "hot", entity, "i1" if i < 4 else "i2") for i, entity in enumerate(["device/a", "device/b"] * 3))
    figures = judged(raised(1100), raised(1101), truths=(HOT,), fired=fired).figures()
    assert figures["findings_per_fault"] == 2
    assert figures["findings_per_fault_ungrouped"] == 2
    none = judged(raised(1100)).figures()
    assert none["findings_per_fault"] is None


def test_the_tables_show_each_kind_and_each_false_rule() -> None:
    score = judged(raised(1100), raised(1100, "device/x", rule="wrong", detector="jump"), truths=(HOT, LATER))
    score.add_clean(1, Day([raised(5, rule="quiet", shadow=True)]), 50.0)
    out = io.StringIO()
    Console(width=150, file=out).print(tables(score, score.figures()))
    missing = [word for word in ("thermal", "ghost", "wrong (jump)", "quiet", "incidents per fault") if word not in out.getvalue()]
    assert missing == []
