"""`xpulse capture` and `xpulse agent --replay` as a user runs them, with the fake driver and no bus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from collectors.nvidia.tape.bundle import read
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml_library

__all__ = ["fake_nvml_library"]
XPULSE = [sys.executable, "-m", "xpulse.cli.main"]


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("XPULSE_")}
    return kept | {"XPULSE_STATE_DIR": str(tmp_path / "state"), "XPULSE_NORTHBOUND__KAFKA": "false", "XPULSE_HEALTH__PORT": "0"} | more


def test_without_a_driver_it_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [*XPULSE, "capture", "-o", str(tmp_path / "b.gz")],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "nothing to capture: nvidia: libnvidia-ml.so.1 was not found" in done.stderr.replace("\n", " ")
    assert not list(tmp_path.glob("b.gz*"))


@pytest.mark.slow
def test_a_capture_is_replayed_by_an_agent_without_a_bus(tmp_path: Path, fake_nvml_library: Path) -> None:
    state = nvml.State(tmp_path / "nvml.state", "h100", count=2)
    fake = {"LD_LIBRARY_PATH": str(fake_nvml_library.parent), nvml.STATE_VARIABLE: str(state.path)}
    bundle = tmp_path / "b.gz"
    done = subprocess.run(
        [*XPULSE, "capture", "--seconds", "2", "-o", str(bundle)],
        env=environment(tmp_path, **fake),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "2 reads of 2 devices" in done.stdout
    expected = read(bundle)[1][0].samples["devices"]
    agent = subprocess.Popen(
        [*XPULSE, "agent", "--replay", str(bundle)],
        env=environment(tmp_path, XPULSE_HEALTH__PORT="19610"),
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        text = _metrics("http://127.0.0.1:19610/metrics", agent)
        for device in expected:
            line = next(
                each for each in text.splitlines() if each.startswith("xpulse_device_temperature_celsius{") and device["uid"] in each
            )
            assert float(line.split()[-1]) == device["temperature_celsius"]
            assert 'simulated="true"' in line
    finally:
        agent.terminate()
        agent.communicate(timeout=20)


def _metrics(url: str, agent: subprocess.Popen[str]) -> str:
    """The exposition once it has devices."""
    deadline = time.monotonic() + 60
    text = ""
    while time.monotonic() < deadline:
        assert agent.poll() is None, agent.stderr and agent.stderr.read()
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                text = str(reply.read(), "utf-8")
            if "xpulse_device_temperature_celsius{" in text:
                return text
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.2)
    pytest.fail(f"no device in 60 s: {json.dumps(text[:2000])}")
