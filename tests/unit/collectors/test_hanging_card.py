"""A card whose calls do not come back costs the other cards one restart, and comes back when it answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from collectors.settings import PluginSettings
from collectors.trial import Outcome, Trial
from schemas import topics
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml_library
from tests.unit.collectors.test_agent import Running, started

__all__ = ["fake_nvml_library", "started"]


class Trials:
    """The outcomes of the agent's tries, and what else was read while they ran."""

    def __init__(self, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        self.outcomes: list[str] = []
        self.beside: set[int] = set()
        asked = Trial.outcome

        def outcome(trial: Trial, at: float) -> Outcome | None:
            found = asked(trial, at)
            self.beside.add(len(running.batches("nvidia")))
            if found is not None:
                self.outcomes.append(found)
            return found

        monkeypatch.setattr(Trial, "outcome", outcome)


def test_a_card_that_hangs_the_driver_is_left_out_and_the_others_are_read(
    started: Callable[..., Running], fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = nvml.State(tmp_path / "nvml.state", count=3)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml_library.parent))
    monkeypatch.setenv(nvml.STATE_VARIABLE, str(state.path))
    monkeypatch.setattr("collectors.avoided.FIRST_SECONDS", 6.0)
    plugin = PluginSettings(settings={"processes": False, "pci_check": False})
    running = started({"nvidia": plugin}, hang_seconds=2.0)
    running.until(lambda: len(running.batches("nvidia")) > 2)
    uids = [device.uid for device in running.batches("nvidia")[-1].devices]
    before = len(running.batches("nvidia"))
    state.hang("nvmlDeviceGetUtilizationRates", device=1)

    def left() -> list[str]:
        return [device.uid for batch in running.batches("nvidia")[-1:] for device in batch.devices]

    running.until(lambda: len(running.batches("nvidia")) > before + 3 and left() == [uids[0], uids[2]])
    told = [event for event in running.messages(topics.DEVICE_EVENTS) if event.kind != v1.DeviceEventKind.DEVICE_EVENT_KIND_RECOVERED]
    assert [(v1.DeviceEventKind.Name(e.kind).rpartition("_")[2], e.uid) for e in told] == [("HANG", ""), ("LOST", uids[1])]
    assert f"It was asked for {uids[1]}, which is left out and tried again in 6 s" in told[0].text
    trial = Trials(running, monkeypatch)
    running.until(lambda: trial.outcomes == ["hangs"])
    assert len(trial.beside) > 3, "the other cards are read meanwhile"
    assert running.plugin("nvidia").restarts == 1, "the try is a process of its own"
    state.release("nvmlDeviceGetUtilizationRates", device=1)
    running.until(lambda: left() == uids)
    assert trial.outcomes == ["hangs", "well"]
    assert running.plugin("nvidia").restarts == 1
    assert ("nvidia", "returned") in running.events()
