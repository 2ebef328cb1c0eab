"""The leak run takes two and a half minutes, so it goes on beside the other tests: begun before the folder's first, judged last."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from schemas.topics import ALERTS_JSON
from tests.integration.servers.kcat import kcat_path
from tests.integration.servers.toolchain import Missing
from tests.integration.stack import clean_environment
from tests.integration.up import Up
from xpulse.local.runfiles import read_bus

OPTIONS: Final = ("--no-view", "--simulate", "2x8", "--seed", "7", "--fault", "memory_leak@20s+60s", "--for", "150s")


@dataclass(frozen=True, slots=True)
class LeakRun:
    """`json_lines`: what kcat read, or why there is none. `second_*`: how another `xpulse up` beside it ended."""

    up: Up
    json_lines: Path | Missing
    second_code: int
    second_said: str


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those who wait for the run come last."""
    items.sort(key=lambda item: "leak_run" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session", autouse=True)
def _begin_early(request: pytest.FixtureRequest) -> None:
    """Where the leak run will be asked for, it begins now. What goes wrong with it is told by the test that asks."""
    if any("leak_run" in getattr(item, "fixturenames", ()) for item in request.session.items):
        with contextlib.suppress(Exception):
            request.getfixturevalue("leak_run")


@pytest.fixture(scope="session")
def leak_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeakRun]:
    """The issue's own command. Returns when the first row is shown, so that its start is not slowed down by the next test."""
    folder = tmp_path_factory.mktemp("leak")
    with Up(folder, *OPTIONS, "--summary", "run.json") as up:
        brokers = up.until(lambda: read_bus(up.state), "the address of the embedded bus")
        with alerts_of(brokers, folder / "alerts.jsonl") as json_lines:
            up.until(lambda: "16 devices" in up.log.read_text(), "the first rows")
            second = subprocess.run(
                [sys.executable, "-m", "xpulse.cli.main", "up", "--no-view"],
                cwd=folder,
                env=clean_environment(up.state, {}),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            yield LeakRun(up, json_lines, second.returncode, second.stderr)


@contextlib.contextmanager
def alerts_of(brokers: str, output: Path) -> Iterator[Path | Missing]:
    """kcat, a consumer that knows nothing of us, reads xpulse.alerts.json into a file, a line a message."""
    try:
        kcat = kcat_path()
    except Missing as missing:
        yield missing
        return
    with output.open("wb") as lines:
        consumer = subprocess.Popen(
            [str(kcat), "-b", brokers, "-C", "-u", "-q", "-t", ALERTS_JSON, "-o", "beginning"], stdout=lines, stderr=subprocess.DEVNULL
        )
    try:
        yield output
    finally:
        consumer.kill()
        consumer.wait()
