"""Programs found or not, commands run with their output kept."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.integration.servers import toolchain
from tests.integration.servers.progress import Progress
from tests.integration.servers.toolchain import BuildFailed, Missing


@pytest.fixture
def progress() -> Progress:
    """Progress that nobody reads."""
    return Progress("kafka", out=io.StringIO())


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def add_program(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def test_what_is_missing_is_named_with_its_remedy(no_programs: Path, progress: Progress) -> None:
    add_program(no_programs, "cc")
    with pytest.raises(Missing) as caught:
        toolchain.require("influxdb", {"go": [], "clang": ["clang"], "cc": ["gcc"]}, progress)
    assert caught.value.server == "influxdb"
    assert caught.value.reason == "toolchain missing: go, clang not on PATH"
    assert "apt-get install --no-install-recommends clang" in caught.value.remedy
    assert "install go and put it on PATH" in caught.value.remedy
    assert "gcc" not in caught.value.remedy


def test_what_is_there_is_enough(no_programs: Path, progress: Progress) -> None:
    add_program(no_programs, "go")
    toolchain.require("influxdb", {"go": []}, progress)


def test_a_failed_command_shows_the_tail_of_its_output(tmp_path: Path, progress: Progress) -> None:
    log = tmp_path / "build.log"
    with pytest.raises(BuildFailed, match=r"(?s)ended with 3:.*broken pom"):
        toolchain.run(
            "kafka",
            ["sh", "-c", "echo broken pom >&2; exit 3"],
            cwd=tmp_path,
            log=log,
            progress=progress,
            step="fetching",
        )
    assert log.read_text() == "broken pom\n"


def test_a_command_gets_the_environment_and_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    log = tmp_path / "build.log"
    toolchain.run("kafka", ["sh", "-c", "echo $GOFLAGS $GOBIN"], cwd=tmp_path, log=log, env={"GOBIN": "here"})
    assert log.read_text() == "-mod=mod here\n"


def test_a_long_command_is_seen_to_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "HEARTBEAT_SECONDS", 0.05)
    out = io.StringIO()
    log = tmp_path / "build.log"
    command = ["sh", "-c", "echo compiling; sleep 0.5"]
    toolchain.run("kafka", command, cwd=tmp_path, log=log, progress=Progress("kafka", out=out), step="building")
    lines = out.getvalue().splitlines()
    assert lines[0].endswith("kafka: building")
    assert lines[-1].endswith("kafka: building … compiling")


def test_tail_drops_colours_and_empty_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert toolchain.tail(log) == ""
    log.write_text("one\n\x1b[31mtwo\x1b[0m\n\n\x1b[0m\nthree\n")
    assert toolchain.tail(log, lines=2) == "two\nthree"


def test_progress_counts_from_its_beginning() -> None:
    out = io.StringIO()
    ticks = iter([100.0, 112.34])
    Progress("influxdb", out=out, monotonic_seconds=lambda: next(ticks)).line("building")
    assert out.getvalue() == "[  12.3 s] influxdb: building\n"
