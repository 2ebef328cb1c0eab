"""The forecaster's score is the same whichever store remembers what it said."""

from __future__ import annotations

import pytest

from forecasting.scoring.report import score
from sinks.store import StoreProcessor
from tests.conformance.store.conftest import Filled
from tests.fakes.log_reader import LogReader
from tests.unit.forecasting import fleet, shapes
from tests.unit.forecasting.scoring import kept


def test_a_leak_that_was_foretold_is_found_in_any_store(place: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fleet, kept):  # the stores keep a week
        monkeypatch.setattr(module, "START_NS", place.t0)
    run = kept.Kept()
    run.feed({"nvidia:a": {"memory_used_bytes": shapes.leak(90, 20, 60, 1, sigma=0.01)}})
    sink = StoreProcessor("sqlite", place.writer, identity_tries=0)
    sink.restore(LogReader({}), frozenset())
    assert sink.process([*run.records, *run.topic.records]) == []

    shares: list[float] = []
    report = score(
        place.store,
        {target.metric: target for target in run.settings.targets},
        start_ns=place.t0,
        end_ns=run.now_ns,
        standing_from=0.3,
        progress=lambda share, metric: shares.append(share),
    )

    found = report.metrics["memory_used_bytes"]
    assert (found.breaches.recall, found.breaches.precision, found.breaches.missed) == (1, 1, 0)
    assert found.breaches.lead_seconds is not None
    assert found.breaches.lead_seconds > 15
    assert found.total.forecasts > 20
    assert found.total.to_naive is not None
    assert found.total.to_naive < 0.6
    assert (shares == sorted(shares), shares[-1]) == (True, 1.0)
