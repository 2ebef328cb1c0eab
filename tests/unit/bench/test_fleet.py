"""bench-fleet's quick subset holds its floors: what CI notices when a detector or rule gets worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import fleet

RECALL = 0.94
PRECISION = 0.95
MEDIAN_DELAY_SECONDS = 60.0
FALSE_PER_100_DEVICE_DAYS = 1.0
FALSE_ANOMALIES_PER_100_DEVICE_DAYS = 10.0
"""One in the few hours that are simulated; the goal of the whole bench is 1."""
FINDINGS_PER_FAULT = 2.0


@pytest.mark.slow
def test_the_quick_fleet_holds_its_floors(tmp_path: Path) -> None:
    out = tmp_path / "fleet.json"
    assert fleet.main(["--quick", "--out", str(out), "--each"]) == 0
    figures = json.loads(out.read_text(encoding="utf-8"))
    assert figures["recall"] >= RECALL
    assert figures["precision"] >= PRECISION
    assert figures["median_delay_s"] <= MEDIAN_DELAY_SECONDS
    assert figures["false_per_100_device_days"] <= FALSE_PER_100_DEVICE_DAYS
    assert figures["false_anomalies_per_100_device_days"] <= FALSE_ANOMALIES_PER_100_DEVICE_DAYS
    assert figures["findings_per_fault"] <= FINDINGS_PER_FAULT
