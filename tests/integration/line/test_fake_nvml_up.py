"""`xpulse up --fake-nvml`: the NVIDIA collector on a fake driver through the whole line, every reading marked, nothing left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sinks.open import open_store
from sinks.settings import Sinks
from tests.integration.up import Up, processes_of
from xpulse.testing.nvml import compiler

if TYPE_CHECKING:
    from schemas.store import Latest


@pytest.mark.timeout(180)
def test_fake_cards_go_the_way_of_real_ones(tmp_path: Path) -> None:
    if compiler() is None:
        pytest.skip("no C compiler to build the fake libnvidia-ml.so.1 with")
    with Up(tmp_path, "--no-view", "--fake-nvml", "h100x2", "--for", "20s", "--summary", "run.json") as up:
        assert up.process.wait(150) == 0, up.logs()
    run = json.loads((up.work / "run.json").read_text())
    assert run["simulated"] is True
    assert run["samples"]["published"] == run["samples"]["stored"] > 5
    assert run["samples"]["missing"] == 0
    assert run["restarts"] == run["exits"] == run["malformed"] == {}

    cards = cards_of(up.state)
    assert [dict(card.tags)["model"] for card in cards] == ["NVIDIA H100 80GB HBM3"] * 2
    for card in cards:
        said = {name: value for name, (value, _) in card.values.items()}
        assert (said["simulated"], said["source"], said["driver_version"]) == (True, "nvidia", "590.48.01")
    moving = {tuple(power) for power in powers_of(up.state)}
    assert len(moving) == 2
    assert all(len(set(power)) > 3 for power in moving), "the cards' power does not move"

    assert "2 fake h100 under the NVIDIA collector: all readings are simulated" in up.log.read_text()
    assert processes_of(up.state) == {}
    assert [path.name for path in (up.state / "fake-nvml").iterdir() if not path.name.startswith("fake-nvml-")] == []


def cards_of(state: Path) -> list[Latest]:
    store = open_store(Sinks(), state)
    try:
        return sorted(store.latest("device"), key=lambda card: dict(card.tags)["uid"])
    finally:
        store.close()


def powers_of(state: Path) -> list[list[float]]:
    store = open_store(Sinks(), state)
    try:
        return [series.values.tolist() for series in store.range("device", ["power_watts"], start_ns=0, end_ns=2**62)]
    finally:
        store.close()
