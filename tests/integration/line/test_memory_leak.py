"""The run that newcomers are shown: a leak is foretold, becomes true, and ends; nothing is lost, doubled or left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from schemas import topics
from schemas.identity import fingerprint
from tests.integration.servers.fixtures import give_up
from tests.integration.servers.kcat import kcat_path
from tests.integration.servers.toolchain import Missing
from tests.integration.stack import Up, clean_environment, processes_of, wait_for
from xpulse.local.runfiles import read_bus, read_ports
from xpulse.local.status import read
from xpulse.roles import ROLES

OPTIONS: Final = ("--no-view", "--simulate", "2x8", "--seed", "7", "--fault", "memory_leak@20s+60s", "--for", "150s")
PREDICTED, FULL = "memory_exhaustion_predicted", "memory_nearly_full"
MOST_BYTES: Final = 900 * 1000 * 1000
FIRST_ROW_SECONDS: Final = 15.0
BUSY_FIRST_ROW_SECONDS: Final = 45.0
"""Where more is running than there are cores: then the time says more of the others than of us."""

STOP_SECONDS: Final = 5.0
STARTED: Final = tuple(role.name for role in ROLES if role.name != "influxdb")


@pytest.fixture(scope="module")
def kcat() -> Path:
    """A plain consumer that knows nothing of us."""
    try:
        return kcat_path()
    except Missing as missing:
        give_up(missing)


@contextlib.contextmanager
def reading(kcat: Path, up: Up, output: Path) -> Iterator[None]:
    """kcat on xpulse.alerts.json from the moment the bus has an address, one JSON line a message."""
    brokers = up.until(lambda: read_bus(up.state), "the address of the embedded bus")
    wait_for(lambda: _accepts(brokers), "the embedded bus accepts a connection")
    listed = subprocess.run([str(kcat), "-b", brokers, "-L", "-J"], capture_output=True, timeout=30, check=True)
    assert topics.ALERTS_JSON in {row["topic"] for row in json.loads(listed.stdout)["topics"]}
    with output.open("wb") as lines:
        command = [str(kcat), "-b", brokers, "-C", "-u", "-q", "-t", topics.ALERTS_JSON, "-o", "beginning"]
        consumer = subprocess.Popen(command, stdout=lines, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        consumer.kill()
        consumer.wait()


def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False


def lines_of(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(420)
@pytest.mark.parametrize("runner", ["faust", "direct"])
def test_a_leak_is_foretold_then_true_then_over(runner: str, kcat: Path, tmp_path: Path) -> None:
    json_lines = tmp_path / "alerts.jsonl"
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    with Up(tmp_path, *OPTIONS, "--summary", "run.json", *(() if runner == "faust" else ("--runner", runner))) as up:
        with reading(kcat, up, json_lines):
            second = subprocess.run(
                [sys.executable, "-m", "xpulse.cli.main", "up", "--no-view"],
                cwd=tmp_path,
                env=clean_environment(up.state, {}),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert second.returncode == 2
            assert f"already running here (process {up.process.pid}" in second.stderr
            # while it runs, the plain consumer has seen both alerts fire and end
            up.until(lambda: len(lines_of(json_lines)) >= 4, "kcat has read four transitions", seconds=200)
        code = up.process.wait(240)
        assert code == 0, up.logs()
        run = json.loads((up.work / "run.json").read_text())
        try:
            check_summary(run, BUSY_FIRST_ROW_SECONDS if busy else FIRST_ROW_SECONDS)
            check_mirror(lines_of(json_lines))
            check_nothing_is_left(up)
        except AssertionError:
            sys.stderr.write(f"{json.dumps(run, indent=1)}\n{up.logs()}")
            raise


def check_summary(run: dict[str, Any], first_row_seconds: float) -> None:
    assert run["alerts"].keys() == {PREDICTED, FULL}
    (entity,) = run["alerts"][PREDICTED]
    once = {entity: {"firing": 1, "resolved": 1}}
    assert run["alerts"] == {PREDICTED: once, FULL: once}, "each alert once, for one device"
    assert run["alerts_doubled"] == []
    at = {(row["rule"], row["status"]): row["at_seconds"] for row in run["alert_timeline"]}
    assert 20 < at[(PREDICTED, "firing")] < at[(FULL, "firing")] < at[(FULL, "resolved")]
    assert at[(PREDICTED, "firing")] < at[(PREDICTED, "resolved")]
    assert at[(FULL, "firing")] < 80 < at[(FULL, "resolved")], "it ends with the leak, not before"
    assert run["findings"].keys() == {PREDICTED, FULL}
    assert run["forecasts"]["breaches"].keys() == {f"{entity} memory_used_bytes"}
    samples = run["samples"]
    assert samples["published"] == samples["joined"] == samples["stored"] > 250
    assert samples["device_samples"] == 8 * samples["published"]
    assert (samples["missing"], samples["repeated"]) == (0, 0)
    assert samples["not_stored"] == samples["gaps"] == samples["unacknowledged_tails"] == []
    assert samples["owners"].keys() <= {"known", "idle", "shared"}, "an owner was not known"
    assert run["dlq"] == []
    assert run["malformed"] == run["restarts"] == run["exits"] == {}
    assert run["bus_restarts"] == 0
    assert run["simulated"] is True
    assert run["seconds_to_first_row"] < first_row_seconds
    assert run["peak_memory_bytes"].keys() == {"bus", *STARTED}
    assert all(size > 0 for size in run["peak_memory_bytes"].values())
    assert run["peak_memory_total_bytes"] < MOST_BYTES


def check_mirror(alerts: list[dict[str, Any]]) -> None:
    """What kcat saw: the same transitions, in order, as JSON that says what it is about."""
    seen = [(row["rule"], row["status"]) for row in alerts]
    assert sorted(seen) == sorted([(PREDICTED, "firing"), (PREDICTED, "resolved"), (FULL, "firing"), (FULL, "resolved")])
    assert seen.index((PREDICTED, "firing")) < seen.index((FULL, "firing")) < seen.index((FULL, "resolved"))
    assert len({row["entity"] for row in alerts}) == 1
    for row in alerts:
        assert row["fingerprint"] == fingerprint(row["rule"], row["cluster"], row["entity"])
        assert row["simulated"] is True
    for rule in (PREDICTED, FULL):
        assert len({row["episode"] for row in alerts if row["rule"] == rule}) == 1


def check_nothing_is_left(up: Up) -> None:
    assert processes_of(up.state) == {}
    assert [path.name for path in up.work.iterdir()] == ["run.json"]
    kept = {path.name for path in up.state.iterdir()}
    assert kept <= {"logs", "xpulse.sqlite", "faust"}, "only logs and the store stay"


@pytest.mark.timeout(180)
def test_ctrl_c_ends_everything_within_five_seconds(tmp_path: Path) -> None:
    with Up(tmp_path, "--no-view", "--simulate", "1x2") as up:

        def all_ready() -> bool:
            ports = read_ports(up.state, STARTED)
            return all(port and (status := read(port)) and status.ready for port in ports.values())

        up.until(all_ready, "every role is ready")
        running = processes_of(up.state)
        assert len(running) >= len(STARTED) + 2, "the roles, the bus and the supervisor"
        asked = time.monotonic()
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(30) == 0
        assert time.monotonic() - asked < STOP_SECONDS
        assert processes_of(up.state) == {}
        assert list(up.work.iterdir()) == []
        assert {path.name for path in up.state.iterdir()} <= {"logs", "xpulse.sqlite", "faust"}
