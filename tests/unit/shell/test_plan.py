"""What `xpulse up` was asked for becomes processes and their environment; a bad option says how a good one looks."""

import json
from pathlib import Path

import pytest

from xpulse.errors import UsageError
from xpulse.local.plan import Options, Shape, Where, duration_seconds, environment, shape, specs

WHERE = Where(brokers="127.0.0.1:1", embedded=True, store="sqlite", state=Path("s"), cluster="local", scenario_started_at_ns=5)


def test_shapes() -> None:
    assert shape("2x8") == Shape(1, 2, 8)
    assert shape("2x3x4") == Shape(2, 3, 4)
    assert shape("2x3x4").cluster_names() == ["local-a", "local-b"]
    assert shape("2x8").cluster_names("prod") == ["prod"]
    for bad in ("", "8", "2x", "0x8", "axb", "2x8x", "100x100x100", "2x8\n", "\u0662x8", "9" * 5000 + "x8"):
        with pytest.raises(UsageError, match="simulate"):
            shape(bad)


@pytest.mark.parametrize(("text", "seconds"), [("150s", 150), ("2m", 120), ("1.5h", 5400), ("500ms", 0.5), ("7", 7), ("7d", 604_800)])
def test_durations(text: str, seconds: float) -> None:
    assert duration_seconds(text, "--for") == seconds


@pytest.mark.parametrize("text", ["", "0s", "-3s", "soon", "5w", "1s\n", "\u0661s", "999999999h", "9" * 400])
def test_bad_durations(text: str) -> None:
    with pytest.raises(UsageError, match="--for"):
        duration_seconds(text, "--for")


def test_simulated_environment_turns_the_real_plugin_off() -> None:
    found = environment(Options(simulate=Shape(1, 2, 8), seed=3, faults=("thermal@1s+2s",), runner="direct"), WHERE)
    plugins = json.loads(found["XPULSE_COLLECTORS__PLUGINS"])
    assert plugins["nvidia"]["enabled"] is False
    assert plugins["simulated"]["settings"] == {
        "clusters": ["local"],
        "nodes": 2,
        "devices_per_node": 8,
        "seed": 3,
        "started_at_ns": 5,
        "faults": ["thermal@1s+2s"],
    }
    assert found["XPULSE_STREAMS__RUNNER"] == "direct"


def test_without_simulation_the_users_plugins_stand() -> None:
    assert "XPULSE_COLLECTORS__PLUGINS" not in environment(Options(), WHERE)


def test_every_role_is_started_once_and_the_first_row_comes_first() -> None:
    found = specs(WHERE, {})
    assert [s.name for s in found if s.stage == 0] == ["agent", "sqlite"]
    assert sorted(s.name for s in found) == sorted(["agent", "sqlite", "attribute", "detect", "alert", "notify", "mirror", "forecast"])
