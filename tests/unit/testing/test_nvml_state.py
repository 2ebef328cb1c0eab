"""The file behind the fake libnvidia-ml: boards, many cards of one, call counts, and what can be wished for."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fakes.nvml.fixtures import fake_nvml_library
from xpulse.testing import nvml
from xpulse.testing.nvml import State, building, faults, profile, profiles

__all__ = ["fake_nvml_library"]
SOURCES = Path(building.__file__).with_name("library")


def test_the_boards_are_these() -> None:
    assert profiles() == ("a100", "a100-mig", "gb10", "gb200", "h100", "h100-mig", "h200", "l40s", "t4")


@pytest.mark.parametrize("name", profiles())
def test_a_board_says_where_its_numbers_are_from_and_only_what_the_library_reads(name: str) -> None:
    state = profile(name)
    assert "invented" in state["about"]
    assert set(state) <= {
        "about",
        "cuda_version",
        "defaults",
        "devices",
        "driver_version",
        "fields_known_below",
        "missing_symbols",
        "nvml_version",
    }
    assert set(state["defaults"]) | set(state["devices"][0]) <= building.keys()
    assert building.exported() >= set(state.get("missing_symbols", ()))


def test_many_cards_of_a_board_have_names_of_their_own() -> None:
    cards = profile("h100-mig", 128)["devices"]
    for key in ("uuid", "serial", "bus_id"):
        assert len({card[key] for card in cards}) == 128, key
    assert len({instance["uuid"] for card in cards for instance in card["mig"]["instances"]}) == 128 * 4
    assert all(re.fullmatch(r"[0-9A-F]{8}:[0-9A-F]{2}:00\.0", card["bus_id"]) for card in cards)


@pytest.mark.parametrize(("name", "count", "says"), [("b300", 1, "there are: a100"), ("h100", 0, "1 to 128"), ("h100", 129, "1 to 128")])
def test_what_is_no_board_is_refused(name: str, count: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        profile(name, count)


def test_several_changes_are_written_once(tmp_path: Path) -> None:
    state = State(tmp_path / "s.json")
    before = (tmp_path / "s.json").stat().st_ino
    with state.changing():
        state.lose(0)
        state.latency(20)
        assert (tmp_path / "s.json").stat().st_ino == before
    written = json.loads((tmp_path / "s.json").read_text())
    assert (written["devices"][0]["error"], written["latency_us"]) == (15, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.json", "s.json.seq"]


def test_a_cards_own_word_wins(tmp_path: Path) -> None:
    state = State(tmp_path / "s.json", count=2)
    state.device(1).field(82, 99)
    assert (state.value(0, "82", "fields"), state.value(1, "82", "fields")) == (55, 99)
    assert state.value(0, "nothing") is None


def test_the_oldest_events_go(tmp_path: Path) -> None:
    state = State(tmp_path / "s.json")
    with state.changing():
        for _ in range(5000):
            state.push_xid(0, 45)
    assert [state.data["events"][i]["id"] for i in (0, -1)] == [5000 - 4096 + 1, 5000]


def test_a_fault_is_ended_without_the_others() -> None:
    call = "nvmlDeviceGetFanSpeed"
    data: dict[str, object] = {"symbols": {call: 3}}
    faults.put(data, call, "latency_us", 9)
    assert data["symbols"] == {call: {"return": 3, "latency_us": 9}}
    faults.put(data, call, "return", None)
    assert data["symbols"] == {call: {"latency_us": 9}}
    faults.put(data, call, "latency_us", None)
    assert data["symbols"] == {}


def test_a_wish_that_nothing_would_hear_is_refused(tmp_path: Path) -> None:
    state = State(tmp_path / "s.json")
    with pytest.raises(ValueError, match="no symbol nvmlDeviceGetFanSped"):
        state.fail("nvmlDeviceGetFanSped", 3)
    with pytest.raises(ValueError, match="knows no temprature_celsius"):
        state.device(0).set(temprature_celsius=50)
    with pytest.raises(ValueError, match="knows no driver"):
        state.set(driver="590")
    state.fail("nvmlInit", 9)
    state.fail("nvmlDeviceGetMemoryInfo_v2", 3, device=0)
    assert set(state.data["symbols"]) == {"nvmlInit"}


def test_calls_of_all_processes_are_counted_by_symbol(fake_nvml_library: Path, tmp_path: Path) -> None:
    state, counted = State(tmp_path / "s.json"), tmp_path / "calls"
    script = (
        "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0)\n"
        "for _ in range(5): n.nvmlDeviceGetPowerUsage(h)\n"
        "n.nvmlShutdown()"
    )
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(fake_nvml_library.parent),
        nvml.STATE_VARIABLE: str(state.path),
        nvml.CALLS_VARIABLE: str(counted),
    }
    assert nvml.calls(counted) == {}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    found = nvml.calls(counted)
    assert found["nvmlDeviceGetPowerUsage"] == 10
    assert found["nvmlInitWithFlags"] == 2
    assert "nvmlDeviceGetFanSpeed" not in found


def test_the_library_has_what_its_name_promises(fake_nvml_library: Path) -> None:
    """The loader tells libraries apart by SONAME, and only NVML's names may leak out of it."""
    data = fake_nvml_library.read_bytes()
    assert b"libnvidia-ml.so.1" in data
    library = ctypes.CDLL(str(fake_nvml_library))
    assert all(hasattr(library, name) for name in building.exported())
    assert not hasattr(library, "parse_json")
    assert len(building.exported()) > 150
    old_names = {"nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetMemoryInfo", "nvmlEventSetWait", "nvmlDeviceGetRetiredPages"}
    assert building.exported() >= old_names, "NVML keeps them, and programs built long ago look for them"


def test_the_guide_names_every_key_that_the_library_reads() -> None:
    guide = (Path(building.__file__).parents[3] / "docs" / "guide" / "fake-nvml.md").read_text()
    spelt = set(re.findall(r"[a-z][a-z0-9_]+", guide))
    text = "".join(source.read_text() for source in SOURCES.glob("*.c") if source.name not in ("json.c", "nvml.c"))
    keys = set(re.findall(r'"([a-z][a-z0-9_]+)"', text)) - {"at", "un", "volatile", "aggregate", "value"}
    assert keys - spelt == set()
    assert set(profiles()) <= set(re.findall(r"`([a-z0-9]+(?:-mig)?)`", guide)), "boards"


def test_several_may_build_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "cc"
    slow.write_text('#!/bin/sh\nsleep 0.05\nfor to; do :; done\nexec echo built > "$to"\n')  # the last argument is what to write
    slow.chmod(0o700)
    monkeypatch.setenv("CC", str(slow))
    with ThreadPoolExecutor(3) as pool:
        built = set(pool.map(lambda _: nvml.build(tmp_path / "cache"), range(3)))
    (library,) = built
    assert [path.name for path in library.parent.iterdir()] == [nvml.LIBRARY]
    assert library.read_text() == "built\n"
