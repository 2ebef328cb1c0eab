"""`xpulse up --fake-nvml`: what is asked for is understood or refused with a remedy, and becomes settings and environment of the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.nvml.fixtures import fake_nvml_library
from xpulse.errors import UsageError
from xpulse.local.fakenvml import FakeDriver, FakeNvml, fake_nvml
from xpulse.local.plan import Options, Shape, Where, environment, specs
from xpulse.local.up import decide
from xpulse.settings import load
from xpulse.testing.nvml import STATE_VARIABLE

__all__ = ["fake_nvml_library"]
WHERE = Where(brokers="127.0.0.1:1", embedded=True, store="sqlite", state=Path("s"), cluster="local")


@pytest.mark.parametrize(
    ("text", "asked"), [("h100", FakeNvml("h100", 1)), ("h100x8", FakeNvml("h100", 8)), ("a100-migx4", FakeNvml("a100-mig", 4))]
)
def test_a_board_and_how_many(text: str, asked: FakeNvml) -> None:
    assert fake_nvml(text) == asked


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "give BOARD or BOARDxCOUNT as in h100x8; boards: a100"),
        ("8xh100", "give BOARD"),
        ("h100x8\n", "give BOARD"),
        ("b300x8", "no fake board 'b300'"),
        ("h100x0", "1 to 128"),
        ("h100x129", "1 to 128"),
    ],
)
def test_what_is_not_understood_says_what_is(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        fake_nvml(text)


def test_the_real_collector_reads_it_and_says_that_it_is_simulated() -> None:
    plugins = json.loads(environment(Options(fake_nvml=FakeNvml("h100")), WHERE)["XPULSE_COLLECTORS__PLUGINS"])
    assert plugins["nvidia"] == {"enabled": True, "on_unavailable": "fail", "settings": {"simulated": True}}
    assert plugins["simulated"] == {"enabled": False}
    assert Options(fake_nvml=FakeNvml("h100")).simulated
    assert Options(simulate=Shape(1, 1, 1)).simulated
    assert not Options().simulated


def test_only_the_agent_gets_the_library() -> None:
    where = Where(brokers="b", embedded=True, store="sqlite", state=Path("s"), cluster="c", agent={"LD_LIBRARY_PATH": "x"})
    assert [spec.name for spec in specs(where, {"A": "1"}) if "LD_LIBRARY_PATH" in spec.environment] == ["agent"]
    assert all(spec.environment["A"] == "1" for spec in specs(where, {"A": "1"}))


def test_faults_are_of_the_simulated_fleet() -> None:
    with pytest.raises(UsageError, match="does not go with --fake-nvml"):
        decide(load(), Options(fake_nvml=FakeNvml("h100"), faults=("thermal@1s+2s",)))
    _, (note,) = decide(load(), Options(fake_nvml=FakeNvml("h100", 4)))
    assert note == "4 fake h100 under the NVIDIA collector: all readings are simulated"


def test_the_driver_is_built_once_and_gone_after_the_run(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/others")
    (tmp_path / "fake-nvml").symlink_to(fake_nvml_library.parents[1])
    driver = FakeDriver.build(FakeNvml("l40s", 3), tmp_path)  # the board whose driver lacks nothing
    assert driver.library.samefile(fake_nvml_library)
    assert driver.environment() == {"LD_LIBRARY_PATH": f"{driver.library.parent}:/others", STATE_VARIABLE: str(driver.state_path)}
    with driver.running(seed=7):
        assert len(json.loads(driver.state_path.read_text())["devices"]) == 3
    assert [path for path in driver.state_path.parent.iterdir() if path.name.startswith("state.json")] == []


def test_what_an_old_driver_has_not_its_fake_has_not(fake_nvml_library: Path, tmp_path: Path) -> None:
    (tmp_path / "fake-nvml").symlink_to(fake_nvml_library.parents[1])
    driver = FakeDriver.build(FakeNvml("t4"), tmp_path)
    assert dynamic_names(driver.library).strip() == b"['nvmlInit_v2']"


def dynamic_names(library: Path) -> bytes:
    """Names that the library exports."""
    code = f"import ctypes; l = ctypes.CDLL({str(library)!r}); print([n for n in ('nvmlInit_v2', 'nvmlGpmSampleAlloc') if hasattr(l, n)])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout


def up(state: Path, *options: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment_ = {**os.environ, "XPULSE_STATE_DIR": str(state)} | ({"PATH": path} if path is not None else {})
    environment_.pop("CC", None)
    command = [sys.executable, "-m", "xpulse.cli.main", "up", "--no-view", *options]
    return subprocess.run(command, env=environment_, capture_output=True, text=True, check=False, timeout=60)


def test_without_a_compiler_it_ends_with_2_and_the_remedy(tmp_path: Path) -> None:
    done = up(tmp_path, "--fake-nvml", "h100x2", path=str(tmp_path))
    assert done.returncode == 2
    assert "no C compiler" in done.stderr
    assert "apt install gcc; or use --simulate 2x8" in done.stderr


def test_it_does_not_go_with_simulate(tmp_path: Path) -> None:
    done = up(tmp_path, "--fake-nvml", "h100x2", "--simulate", "2x8")
    assert done.returncode == 2
    assert "choose one" in done.stderr
