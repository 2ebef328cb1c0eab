"""From samples through the worker and a real store to the report: what was foretold, missed, said in vain, averted."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from forecasting import targets
from forecasting.scoring.document import document
from forecasting.scoring.said import said
from forecasting.settings import Forecasting
from schemas import topics
from schemas.codec import encode
from schemas.store import Row
from schemas.telemetry import v1
from tests.fakes.store_messages import allocation
from tests.unit.forecasting import shapes
from tests.unit.forecasting.fleet import SECOND, START_NS, window
from tests.unit.forecasting.scoring.kept import Kept

ONSET = 20


def leaks(run: Kept, seed: int = 1) -> None:
    run.feed(
        {
            "sim:leaks": {"memory_used_bytes": shapes.leak(90, ONSET, 60, seed, sigma=0.01)},
            "sim:flat": {"memory_used_bytes": shapes.flat(90, seed)},
        }
    )


def test_a_leak_is_foretold_and_the_report_says_so(tmp_path: Path) -> None:
    run = Kept()
    leaks(run)
    report = run.report(tmp_path)
    found = report.metrics["memory_used_bytes"]
    assert (found.breaches.crossings, found.breaches.missed, found.breaches.verdicts) == (1, 0, {"hit": 1})
    assert found.breaches.recall == found.breaches.precision == 1
    assert found.breaches.lead_seconds is not None
    assert 15 < found.breaches.lead_seconds <= 25
    accuracy = found.total
    assert accuracy.forecasts > 20
    assert accuracy.to_naive is not None
    assert accuracy.to_naive < 0.6
    assert accuracy.coverage is not None
    assert 0.7 < accuracy.coverage <= 1
    assert found.best is not None
    assert found.best.mase < 2
    assert report.simulated
    assert found.calibration.counts[-1] > 10
    assert found.calibration.hits[-1] == found.calibration.counts[-1]


def test_the_document_is_plain_json(tmp_path: Path) -> None:
    run = Kept()
    leaks(run)
    plain = json.loads(json.dumps(document(run.report(tmp_path)), allow_nan=False))
    memory = plain["metrics"]["memory_used_bytes"]
    assert memory["unit"] == "By"
    assert memory["breaches"]["recall"] == 1.0
    assert sum(model["judged"] for model in memory["models"].values()) == memory["judged"] > 0
    assert sum(tenth["said"] for tenth in memory["calibration"]) > 10
    assert memory["leads"][0]["lead_seconds"] == 1.0


def test_a_leak_that_stops_was_said_in_vain(tmp_path: Path) -> None:
    y = shapes.leak(75, ONSET, 60, 1)
    y[40:] = shapes.noisy(np.full(35, y[39] / 1e9), 2)
    run = Kept()
    run.feed({"sim:a": {"memory_used_bytes": y}})
    breaches = run.report(tmp_path).metrics["memory_used_bytes"].breaches
    assert breaches.verdicts == {"false": 1}
    assert (breaches.precision, breaches.recall) == (0, None)


@pytest.mark.parametrize("how", ["restart of the device", "deploy of its service", "its workload left", "another node's"])
def test_what_was_prevented_is_not_false(tmp_path: Path, how: str) -> None:
    run = Kept()
    run.feed({"sim:a": {"memory_used_bytes": np.r_[shapes.leak(40, ONSET, 60, 1), shapes.noisy(np.full(30, 2.0), 2)]}})
    at_ns = START_NS + 40 * SECOND
    held = allocation(v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_OPENED, START_NS, identity="1", uid="sim:a")
    held.cluster, held.node = "c0", "n0"
    restart = v1.ContextEvent(cluster="c0", node="n0", kind=v1.ContextEventKind.CONTEXT_EVENT_KIND_RESTART, at_ns=at_ns, text="restarted")
    match how:
        case "restart of the device":
            restart.entity = "device/sim:a"
            run.happened(restart)
        case "deploy of its service":
            run.happened(held)
            restart.entity, restart.kind = "service/c0/prod/chat", v1.ContextEventKind.CONTEXT_EVENT_KIND_DEPLOY
            run.happened(restart)
        case "its workload left":
            held.kind, held.allocation.ended_at_ns = v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_CLOSED, at_ns
            run.happened(held)
        case _:
            restart.entity, restart.node = "node/c0/n7", "n7"
            run.happened(restart)
    breaches = run.report(tmp_path).metrics["memory_used_bytes"].breaches
    expected = {"false": 1} if how == "another node's" else {"averted": 1}
    assert breaches.verdicts == expected
    assert breaches.precision == (0 if how == "another node's" else None)


def test_a_jump_over_the_limit_is_missed_and_called_sudden(tmp_path: Path) -> None:
    run = Kept()
    run.feed({"sim:a": {"memory_used_bytes": np.r_[shapes.noisy(np.full(40, 30.0), 1), shapes.noisy(np.full(30, 78.0), 2)]}})
    breaches = run.report(tmp_path).metrics["memory_used_bytes"].breaches
    assert (breaches.crossings, breaches.missed, breaches.missed_sudden, breaches.recall) == (1, 1, 1, 0)


def test_a_signal_that_was_lost_counts_for_nobody(tmp_path: Path) -> None:
    run = Kept()
    run.feed(
        {
            "sim:a": {"memory_used_bytes": np.r_[shapes.leak(40, ONSET, 60, 1), np.full(30, np.nan)]},
            "sim:b": {"memory_used_bytes": shapes.flat(70, 1)},
        }
    )
    breaches = run.report(tmp_path).metrics["memory_used_bytes"].breaches
    assert breaches.verdicts == {"lost": 1}
    assert breaches.precision is None


def test_what_still_stands_is_open(tmp_path: Path) -> None:
    run = Kept()
    run.feed({"sim:a": {"memory_used_bytes": shapes.leak(42, ONSET, 60, 1)}})
    report = run.report(tmp_path)
    assert report.metrics["memory_used_bytes"].breaches.verdicts == {"open": 1}
    assert report.pending["memory_used_bytes"] > 5


def test_services_and_margins_are_judged_alike(tmp_path: Path) -> None:
    run = Kept(Forecasting(workers=0, targets=(targets.KV_CACHE, targets.THERMAL_MARGIN)), limits={"temperature_slowdown_celsius": None})
    t = np.arange(110)
    fill = np.clip(0.6 + 0.42 * np.clip((t - 40) / 50, 0, 1), 0, 1)
    margin = np.round(20 - 22 * np.clip((t - 40) / 40, 0, 1))
    for i in range(t.size):
        run.give(window(run.now_ns, kv_cache_used_ratio=float(fill[i])), 0)
        run.feed({"sim:a": {"temperature_margin_celsius": margin[i : i + 1]}}, step_seconds=60)
    report = run.report(tmp_path)
    for metric in ("kv_cache_used_ratio", "temperature_margin_celsius"):
        breaches = report.metrics[metric].breaches
        assert (metric, breaches.recall, breaches.precision) == (metric, 1, 1)
        assert breaches.lead_seconds is not None
        assert breaches.lead_seconds > 600


def test_only_the_asked_metric_is_read_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    run = Kept()
    leaks(run)
    assert list(run.report(tmp_path, metrics=("memory_used_bytes",)).metrics) == ["memory_used_bytes"]
    with pytest.raises(KeyError, match=r"power_watts.*there are memory_used_bytes"):
        run.report(tmp_path, metrics=("power_watts",))


def test_stretches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in one piece or in twenty: the same score, but for the order in which floats are added."""
    run = Kept()
    leaks(run)
    whole = json.dumps(document(run.report(tmp_path)))
    monkeypatch.setattr("forecasting.scoring.report._LEAST_STRETCHES", 23)
    pieces = json.dumps(document(run.report(tmp_path)))
    assert rounded(pieces) == rounded(whole)


def rounded(text: str) -> object:
    return json.loads(text, parse_float=lambda number: f"{float(number):.9g}")


def test_a_row_that_is_none_of_ours_is_counted(tmp_path: Path) -> None:
    run = Kept()
    leaks(run)
    run.report(tmp_path)
    db = sqlite3.connect(tmp_path / "kept.sqlite")
    db.execute("UPDATE forecast SET p50 = '{\"a\": 1}' WHERE rowid = 1")
    db.commit()
    db.close()
    run.records, run.topic.records = [], []
    assert run.report(tmp_path).unreadable == 1


def test_a_metric_that_is_none_any_more_is_left_out_and_said(tmp_path: Path) -> None:
    run = Kept()
    leaks(run)
    old = v1.Forecast(cluster="c0", node="n0", entity="device/sim:a", metric="fan_rpm", made_at_ns=START_NS + SECOND, p50=[1.0])
    run.topic.keep([encode(topics.FORECASTS, b"device/sim:a", old)], START_NS)
    report = run.report(tmp_path)
    assert set(report.metrics) == {"memory_used_bytes"}
    assert "fan_rpm" in report.skipped["fan_rpm"]


@pytest.mark.parametrize("text", ['{"a": 1}', "[[1.0], [2.0]]", '["x"]', "[1.0", "null"])
def test_a_list_that_is_none_is_no_forecast(text: str) -> None:
    tags = (("cluster", "c"), ("entity", "device/a"), ("metric", "m"))
    with pytest.raises((ValueError, TypeError)):
        said(Row(1, tags, {"p50": text}))


def test_an_empty_store_has_nothing_to_score(tmp_path: Path) -> None:
    report = Kept().report(tmp_path)
    assert report.metrics == {}
