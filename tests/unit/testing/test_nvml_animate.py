"""A moving fake: the same for each seed, counters that only rise, numbers within the board's limits, nothing for what is not there."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from xpulse.testing.nvml import State, profiles
from xpulse.testing.nvml.animate import Animation, animated, job_of

FAKE = "fake NVML"


def run(path: Path, profile: str, seed: int = 7, seconds: int = 240, count: int = 2) -> list[dict[str, Any]]:
    """The file after each step of five seconds."""
    state = State(path, profile, count=count)
    animation = Animation(state, seed)
    seen = []
    for at in range(0, seconds, 5):
        animation.step(at)
        seen.append(json.loads(path.read_text()))
    return seen


def test_the_same_seed_tells_the_same_story(tmp_path: Path) -> None:
    first, second, other = (run(tmp_path / name, "h100", seed) for name, seed in (("a", 7), ("b", 7), ("c", 8)))
    assert first == second
    assert first != other


@pytest.mark.parametrize("profile", profiles())
def test_numbers_stay_within_what_the_board_allows(tmp_path: Path, profile: str) -> None:
    state = State(tmp_path / "own.json", profile)
    for seen in run(tmp_path / "s.json", profile, seconds=600, count=1):
        card = seen["devices"][0]
        said = {**seen["defaults"], **card}
        assert 0 <= card["utilization_percent"] <= 100
        assert 0 < card["power_milliwatts"] <= said.get("power_limit_milliwatts", 60_000)
        assert 15 <= card["temperature_celsius"] <= 95
        if "memory_total_bytes" in said:
            assert card["memory_used_bytes"] + said.get("memory_reserved_bytes", 0) <= said["memory_total_bytes"]
        known = set(state.data["defaults"]) | set(state.data["devices"][0])
        assert set(card) <= known | {"clock_reasons", "processes", "fields", "gpm"}
        assert set(card["fields"]) <= set(state.data["defaults"]["fields"])


@pytest.mark.parametrize("profile", ["h100", "gb200"])
def test_counters_only_rise_and_do_when_there_is_work(tmp_path: Path, profile: str) -> None:
    seen = run(tmp_path / "s.json", profile)
    for number in ("83", "197", "138" if profile == "h100" else "202:each"):
        values = [state["devices"][0]["fields"][number] for state in seen]
        assert values == sorted(values)
        assert values[-1] > values[0]


def test_jobs_come_and_go_with_their_processes(tmp_path: Path) -> None:
    seen = [state["devices"][0] for state in run(tmp_path / "s.json", "h100", seconds=400)]
    idle = [card for card in seen if card["clock_reasons"] == 1]
    busy = [card for card in seen if card["utilization_percent"] > 50]
    assert len(idle) > 2
    assert len(busy) > 20
    assert all(card["processes"] == [] and card["utilization_percent"] == 0 for card in idle)
    assert all(card["processes"][0]["sm_percent"] > 40 for card in busy)
    assert len({card["processes"][0]["pid"] for card in busy}) > 1
    assert max(card["temperature_celsius"] for card in busy) > min(card["temperature_celsius"] for card in idle)


def test_work_under_mig_is_in_an_instance(tmp_path: Path) -> None:
    busy = [s["devices"][0] for s in run(tmp_path / "s.json", "h100-mig", count=1) if s["devices"][0]["processes"]]
    assert {card["processes"][0]["gi"] for card in busy} == {2}
    assert all("sm_percent" not in card["processes"][0] for card in busy)
    assert max(card["mig"]["instances"][0]["gpm"]["2"] for card in busy) > 40


def test_a_counter_that_was_reset_goes_on_from_there(tmp_path: Path) -> None:
    state = State(tmp_path / "s.json", "h100")
    animation = Animation(state)
    animation.step(0)
    animation.step(10)
    state.reset_counters(0)
    animation.step(11)
    assert 0 < state.value(0, "83", "fields") <= 700_000


def test_no_time_no_growth(tmp_path: Path) -> None:
    state = State(tmp_path / "s.json", "h100")
    before = state.value(0, "83", "fields")
    Animation(state).step(0)
    assert state.value(0, "83", "fields") == before


def test_a_job_is_a_function_of_time() -> None:
    assert job_of(1, 2, 33.0) == job_of(1, 2, 33.0)
    assert {job_of(1, 0, float(at)) is None for at in range(0, 400, 5)} == {True, False}


def test_it_ends_with_its_block(tmp_path: Path) -> None:
    state = State(tmp_path / "s.json", "t4")
    with animated(state):
        assert FAKE in {thread.name for thread in threading.enumerate()}
    assert FAKE not in {thread.name for thread in threading.enumerate()}
