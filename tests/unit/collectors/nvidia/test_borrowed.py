"""Activity of cards without GPM comes from a dcgm-exporter where one is named, and is never older than it says."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from collectors.nvidia.borrowed import Borrowed, borrow
from collectors.nvidia.plugin import Plugin
from collectors.nvidia.settings import Nvidia
from collectors.worker import FAST_AND_SLOW
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from tests.unit.collectors.nvidia.rig import ALONE, ENV, absent

__all__ = ["fake_nvml", "fake_nvml_library"]
A100 = "GPU-1d2b8c60-33f5-4e0a-a4b1-9a6e70c5d210"


class Lender:
    """What a test says an exporter says."""

    def __init__(self, **values: Mapping[str, float]) -> None:
        self.by_uuid: dict[str, Mapping[str, float]] = dict(values)
        self.closed = False

    def values(self, uuid: str) -> Mapping[str, float]:
        return self.by_uuid.get(uuid, {})

    def close(self) -> None:
        self.closed = True


def plugin(lender: Lender) -> Plugin:
    made = Plugin(Nvidia.model_validate(ALONE), ENV, borrowed=Borrowed(lender))
    made.probe()
    return made


def read(made: Plugin) -> tuple[v1.DeviceSample, ...]:
    return made.read(FAST_AND_SLOW, time.monotonic() + 60).samples[0].samples


@pytest.fixture
def board(request: pytest.FixtureRequest, fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixtures.loaded(fake_nvml_library, monkeypatch, nvml.State(tmp_path / "state.json", request.param))


@pytest.mark.parametrize("board", ["a100"], indirect=True)
def test_a_card_without_gpm_borrows_and_says_when_that_is_old(board: None) -> None:
    lender = Lender(**{A100: {"sm_active_ratio": 0.75, "tensor_active_ratio": 0.25}})
    made = plugin(lender)
    (card,) = read(made)
    assert (card.sm_active_ratio, card.tensor_active_ratio) == (0.75, 0.25)
    assert absent(card)["dram_active_ratio"] == "not_supported"
    lender.by_uuid.clear()
    (card,) = read(made)
    assert absent(card)["sm_active_ratio"] == "stale"
    assert absent(card)["dram_active_ratio"] == "not_supported"
    made.close()
    assert lender.closed


@pytest.mark.parametrize("board", ["a100-mig"], indirect=True)
def test_instances_borrow_and_their_card_does_not(board: None) -> None:
    lender = Lender(**{A100: {"sm_active_ratio": 0.5}, f"{A100}/gi3": {"sm_active_ratio": 0.9}})
    made = plugin(lender)
    card, *parts = read(made)
    assert absent(card)["sm_active_ratio"] == "not_supported"
    shown = {
        part.info.partition.gpu_instance_id: part.sm_active_ratio if part.HasField("sm_active_ratio") else absent(part)["sm_active_ratio"]
        for part in parts
    }
    assert shown.pop(3) == pytest.approx(0.9)
    assert set(shown.values()) == {"not_supported"}
    made.close()


def test_a_card_with_gpm_needs_nobody(fake_nvml: nvml.State) -> None:
    made = plugin(Lender(**{"GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a90": {"sm_active_ratio": 0.1}}))
    read(made)
    assert read(made)[0].sm_active_ratio == pytest.approx(0.975)
    made.close()


def test_no_exporter_is_asked_unless_one_is_named() -> None:
    assert borrow("") is None


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not an address"):
        borrow("localhost")
