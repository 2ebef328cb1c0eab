"""The run that newcomers are shown: a leak is foretold, becomes true, and ends; nothing is lost, doubled or left behind."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any, Final

import pytest

from schemas.identity import fingerprint
from tests.integration.line.conftest import LeakRun
from tests.integration.servers.fixtures import give_up
from tests.integration.servers.toolchain import Missing
from tests.integration.up import Up, processes_of
from xpulse.local.runfiles import read_ports
from xpulse.local.status import read
from xpulse.roles import ROLES

PREDICTED, FULL = "memory_exhaustion_predicted", "memory_nearly_full"
MOST_BYTES: Final = 900 * 1000 * 1000
STOP_SECONDS: Final = 5.0
STARTED: Final = tuple(role.name for role in ROLES if role.name != "influxdb")


def lines_of(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_leak_is_foretold_then_true_then_over(leak_run: LeakRun) -> None:
    """The run began with the first test of this folder (conftest.py) and goes on beside the others; this test comes last."""
    up = leak_run.up
    assert leak_run.second_code == 2
    assert f"already running here (process {up.process.pid}" in leak_run.second_said
    assert up.process.wait(240) == 0, up.logs()
    run = json.loads((up.work / "run.json").read_text())
    try:
        check_summary(run)
        check_nothing_is_left(up)
        if isinstance(leak_run.json_lines, Missing):
            give_up(leak_run.json_lines)
        check_mirror(lines_of(leak_run.json_lines))
    except AssertionError as error:
        error.add_note(f"{json.dumps(run, indent=1)}\n{up.logs()}")
        raise


def check_summary(run: dict[str, Any]) -> None:
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
    assert run["seconds_to_first_row"] > 0
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
    assert kept <= {"logs", "xpulse.sqlite", "faust", "addresses.json", "epoch"}, "only logs, the store and what the agent keeps stay"


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
        assert {path.name for path in up.state.iterdir()} <= {"logs", "xpulse.sqlite", "faust", "addresses.json", "epoch"}
