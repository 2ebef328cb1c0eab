"""The agent's pull side needs no bus: none configured (no client is loaded), or one that cannot be reached."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.servers.ports import free_ports

pytestmark = [pytest.mark.integration]


class Agent:
    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port, self.pid, self._process = port, process.pid, process

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def until(self, path: str, words: str) -> str:
        deadline, text = time.monotonic() + 60, ""
        while time.monotonic() < deadline:
            assert self._process.poll() is None, "the agent ended"
            try:
                text = self.get(path)[1]
            except OSError:
                text = "no answer"
            if words in text:
                return text
            time.sleep(0.1)
        pytest.fail(f"{path} does not say {words!r} in 60 s but {text[:300]!r}")


@contextmanager
def agent(folder: Path, **settings: str) -> Iterator[Agent]:
    (port,) = free_ports(1)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XPULSE_")}
    environment |= {
        "XPULSE_STATE_DIR": str(folder / "state"),
        "XPULSE_NORTHBOUND__EXPOSITION__PORT": str(port),
        "XPULSE_COLLECTORS__PLUGINS": '{"simulated": {}}',
        **settings,
    }
    process = subprocess.Popen([sys.executable, "-m", "xpulse.cli.main", "agent"], env=environment, cwd=folder)
    try:
        yield Agent(port, process)
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_without_a_bus_nothing_needs_to_be_set_and_no_client_is_loaded(tmp_path: Path) -> None:
    with agent(tmp_path, XPULSE_NORTHBOUND__KAFKA="false") as one:
        page = one.until("/metrics", "xpulse_device_power_watts{")
        assert 'simulated="true"' in page
        assert 'xpulse_node_info{cluster="default"' in page
        assert "xpulse_bus" not in page
        assert one.until("/readyz", "ready\n") == "ready\n"
        maps = Path(f"/proc/{one.pid}/maps").read_text()
        assert "librdkafka" not in maps
        assert "numpy" not in maps


def test_a_bus_that_cannot_be_reached_stops_no_scrape_and_is_named(tmp_path: Path) -> None:
    (nobody,) = free_ports(1)
    with agent(tmp_path, XPULSE_CLUSTER="prod-a", XPULSE_BUS__BROKERS=f"127.0.0.1:{nobody}") as one:
        page = one.until("/metrics", "xpulse_device_power_watts{")
        assert 'xpulse_node_info{cluster="prod-a"' in page
        assert "bus unreachable" in one.until("/readyz", "bus unreachable")
        assert "xpulse_device_power_watts{" in one.get("/metrics")[1]
        assert one.get("/healthz") == (200, "ok\n")
