"""Every board that there is a fake of: each field of the catalogue is a value in its range or an absence with its reason, never silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.catalogue import CATALOGUE, FAST
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from tests.fakes.nvml.fixtures import fake_nvml_library, old_nvml_library
from tests.unit.collectors.nvidia.rig import Rig, absent, values
from xpulse.testing.nvml import profiles

__all__ = ["fake_nvml_library", "old_nvml_library"]
ALL = {metric.name for metric in CATALOGUE}
CORE = {"power_watts", "temperature_celsius", "memory_used_bytes", "memory_total_bytes", "sm_clock_hertz", "throttle_reasons"}
"""What every card says, whatever its age."""


@pytest.fixture(params=profiles())
def rig(request: pytest.FixtureRequest, fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    state = nvml.State(tmp_path / "nvml.json", request.param, count=2)
    state.set(pcie_window_us=0)
    fixtures.loaded(fake_nvml_library, monkeypatch, state)
    made = Rig(state)
    yield made
    made.plugin.close()
    fixtures.forget()


def test_every_field_is_said(rig: Rig) -> None:
    rig.read()
    for sample in rig.read():
        said, missing = values(sample), absent(sample)
        assert said.keys() | missing.keys() == ALL
        assert not said.keys() & missing.keys()
        assert set(missing.values()) <= {"not_supported"}
        if sample.info.kind == v1.DeviceKind.DEVICE_KIND_ACCELERATOR:
            assert said.keys() >= CORE
        else:
            assert said.keys() >= {"memory_used_bytes", "memory_total_bytes"}


def test_a_fast_tick_says_every_fast_field_and_no_other(rig: Rig) -> None:
    rig.read()
    rig.read()
    for _ in range(3):
        for sample in rig.read(slow=False):
            assert values(sample).keys() | absent(sample).keys() == {metric.name for metric in FAST}
            assert not sample.links


def test_fast_ticks_follow_what_changes(rig: Rig) -> None:
    rig.read()
    for celsius in (44, 45, 45, 91):
        rig.state.every.set(temperature_celsius=celsius)
        cards = [s for s in rig.read(slow=False) if s.info.kind == v1.DeviceKind.DEVICE_KIND_ACCELERATOR]
        assert {card.temperature_celsius for card in cards} == {celsius}


def test_the_oldest_driver_says_what_it_can(old_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = nvml.State(tmp_path / "nvml.json", "t4")
    state.set(pcie_window_us=0)
    fixtures.loaded(old_nvml_library, monkeypatch, state)
    made = Rig(state)
    card = made.card()
    assert values(card).keys() | absent(card).keys() == ALL
    assert values(card).keys() >= CORE
    made.plugin.close()
    fixtures.forget()
