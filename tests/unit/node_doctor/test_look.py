"""The look at a driver, on the fake NVML: what it reads, and that a hanging or crashing one costs only the child."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from collectors.nvidia.source import Source
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library, loaded, old_nvml_library
from xpulse.node_doctor import look as module
from xpulse.node_doctor.look import HANGS, DriverLook, look, look_aside
from xpulse.node_doctor.symbols import LOST
from xpulse.testing.nvml import State as PlainState

__all__ = ["fake_nvml", "fake_nvml_library", "old_nvml_library"]

ROOT = Path(module.__file__).resolve().parents[2]


def test_every_symbol_is_one_that_the_plugin_uses() -> None:
    used = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "collectors/nvidia").rglob("*.py"))
    assert [symbol for symbol in LOST if symbol not in used] == []


def test_a_good_driver(fake_nvml: nvml.State) -> None:
    fake_nvml.every.set(persistence_mode=0)
    seen = look(Source(), LOST)
    assert (seen.trouble, seen.missing, len(seen.cards)) == ("", (), 2)
    assert seen.driver.startswith("590")
    card = seen.cards[0]
    assert (card.code, card.has_gpm, card.persistence, card.mig) == (0, True, False, False)
    assert "H100" in card.name
    assert card.bdf


def test_a_look_leaves_no_session(fake_nvml: nvml.State) -> None:
    import pynvml

    look(Source(), LOST)
    with pytest.raises(pynvml.NVMLError):
        pynvml.nvmlSystemGetDriverVersion()


def test_a_lost_card_hides_no_other(fake_nvml: nvml.State) -> None:
    fake_nvml.lose(1)
    assert [card.code for card in look(Source(), ()).cards] == [0, 15]


def test_instances_are_counted(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(fake_nvml_library, monkeypatch, nvml.State(tmp_path / "s", "h100-mig"))
    (card,) = look(Source(), ()).cards
    assert (card.mig, card.mig_pending, card.instances, card.instance_code) == (True, True, 4, 0)


def test_instances_that_may_not_be_seen(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = nvml.State(tmp_path / "s", "h100-mig")
    loaded(fake_nvml_library, monkeypatch, state)
    state.fail("nvmlDeviceGetMigDeviceHandleByIndex", 4)
    (card,) = look(Source(), ()).cards
    assert (card.instances, card.instance_code) == (0, 4)


def test_an_old_library_says_what_it_lacks(old_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(old_nvml_library, monkeypatch, nvml.State(tmp_path / "s", "t4"))
    seen = look(Source(), LOST)
    assert {"nvmlGpmMetricsGet", "nvmlDeviceGetMarginTemperature"} <= set(seen.missing)
    assert "nvmlDeviceGetFieldValues" not in seen.missing
    assert not seen.cards[0].has_gpm


def test_a_driver_that_is_not_loaded(fake_nvml: nvml.State) -> None:
    fake_nvml.set(init_error=9)
    seen = look(Source(), LOST)
    assert (seen.code, seen.cards) == (9, ())
    assert "modprobe nvidia" in seen.trouble


@pytest.fixture
def child(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlainState:
    """What a child of this process will see."""
    state = PlainState(tmp_path / "nvml.json", "h100", count=1)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml_library.parent))
    monkeypatch.setenv(nvml.STATE_VARIABLE, str(state.path))
    return state


def test_a_child_sees_the_same(child: PlainState) -> None:
    seen = look_aside(tuple(LOST))
    assert (seen.trouble, seen.missing, len(seen.cards), seen.cards[0].has_gpm) == ("", (), 1, True)


def test_a_driver_that_hangs(child: PlainState) -> None:
    child.hang("nvmlDeviceGetPersistenceMode")
    seen = look_aside((), patience_seconds=1.0)
    assert (seen.code, "did not answer for 1 s" in seen.trouble) == (HANGS, True)


def test_a_library_that_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert look_aside(()) == DriverLook("the driver's library ended the process that asked it (exit 1); see dmesg", HANGS)
