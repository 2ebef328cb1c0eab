"""`xpulse forecast report`: help that teaches, a table, JSON, a picture, and one clear line where it cannot work."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from forecasting.settings import demo_profile
from tests.unit.forecasting import shapes
from tests.unit.forecasting.fleet import START_NS
from tests.unit.forecasting.scoring.kept import Kept
from xpulse.cli.main import command
from xpulse.errors import ProblemFound, UsageError
from xpulse.local.up import demo
from xpulse.settings import Settings

COLUMNS = ("judged", "MASE", "vs naive", "in 90 %", "pinball", "crossed", "foretold", "false", "averted", "recall", "precision", "lead")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A settings file whose store holds a leak that was foretold."""
    folder = tmp_path_factory.mktemp("stored")
    run = Kept()
    run.feed({"sim:leaks": {"memory_used_bytes": shapes.leak(70, 20, 60, 1, sigma=0.01)}})
    with run.store(folder):
        pass
    return settings_file(folder, folder / "kept.sqlite")


def settings_file(folder: Path, store: Path) -> Path:
    file = folder / "xpulse.yaml"
    file.write_text(json.dumps({"state_dir": str(folder), "sinks": {"store": "sqlite", "sqlite": {"path": str(store)}}}))
    return file


def typed(config: Path, *words: str) -> Result:
    return CliRunner().invoke(command, ["--config", str(config), "forecast", "report", *words])


def since() -> str:
    """Back to where the simulated fleet begins."""
    return f"{(time.time_ns() - START_NS) // 10**9 + 60}s"


def test_help_explains_every_column() -> None:
    said = CliRunner().invoke(command, ["forecast", "report", "--help"]).output
    for word in (*COLUMNS[1:], "xpulse forecast report --since 24h"):
        assert word in said


def test_the_table_has_a_line_per_metric_and_model(stored: Path) -> None:
    found = typed(stored, "--since", since(), "--metric", "memory_used_bytes")
    assert found.exit_code == 0, found.output
    lines = [line.rstrip() for line in found.stdout.splitlines()]
    assert re.split(r" {2,}", lines[0]) == ["metric and model", "judged", *COLUMNS[1:]]
    whole = next(line for line in lines if line.startswith("memory_used_bytes"))
    assert " 1 1 0 0 100 % 100 % " in " ".join(whole.split())
    assert "The devices are simulated." in lines


def test_json_is_json_and_nothing_else(stored: Path) -> None:
    found = typed(stored, "--since", since(), "--json")
    plain = json.loads(found.stdout)
    assert plain["metrics"]["memory_used_bytes"]["breaches"]["recall"] == 1.0


def test_a_picture_is_drawn_beside_the_table(stored: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `pictures` is not installed")
    found = typed(stored, "--since", since(), "--picture", str(tmp_path / "p.svg"))
    assert found.exit_code == 0, found.output
    assert "memory_used_bytes" in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_a_period_without_forecasts_is_said(stored: Path) -> None:
    found = typed(stored, "--since", "1m")
    assert found.exit_code == 0
    assert "memory_used_bytes" in found.stdout  # it is known, with nothing judged


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--metric", "memory_usage"), "no forecasts of memory_usage.*there are memory_used_bytes"),
        (("--picture", "p.pdf"), r"\.png or \.svg"),
        (("--picture", "nowhere/p.svg"), "there is no folder"),
        (("--since", "soon"), "--since"),
    ],
    ids=["metric", "format", "folder", "since"],
)
def test_wrong_use_is_one_line(stored: Path, words: tuple[str, ...], said: str) -> None:
    found = typed(stored, *words)
    assert isinstance(found.exception, UsageError)
    with pytest.raises(UsageError, match=said):
        raise found.exception


def test_without_a_store_it_says_how_to_get_one(tmp_path: Path) -> None:
    found = typed(settings_file(tmp_path, tmp_path / "none.sqlite"))
    assert isinstance(found.exception, ProblemFound)
    assert "xpulse" in str(found.exception)


def test_the_demo_s_targets_reach_the_roles_through_their_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in demo(Settings()).items():
        monkeypatch.setenv(name, value)
    assert Settings().forecasting == demo_profile()
