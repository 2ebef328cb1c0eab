"""A started process: found by its id, ended on demand, gone when the one who started it is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tests.integration.servers.process import Process

ROOT = Path(__file__).parents[3]


def start(command: list[str], folder: Path) -> Process:
    return Process(command, cwd=folder, env=os.environ, log=folder / "log")


def is_gone_within(pid: int, seconds: float) -> bool:
    """Whether it ends in time; one that is dead and not yet reaped (Z: a container's first process may never do it) has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
        if state.strip()[:1] in ("", "Z"):
            return True
        time.sleep(0.02)
    return False


def exit_code_of(process: Process) -> int | None:
    """The exit code of a command that ends by itself."""
    deadline = time.monotonic() + 10
    while process.exit_code is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    return process.exit_code


def test_pid_exit_code_and_output_are_the_commands_own(tmp_path: Path) -> None:
    process = start(["sh", "-c", "echo out $$; echo err >&2; exit 7"], tmp_path)
    assert exit_code_of(process) == 7
    assert (tmp_path / "log").read_text() == f"out {process.pid}\nerr\n"


def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    process = start(["no-such-server"], tmp_path)
    assert exit_code_of(process) == 127
    assert "no-such-server: No such file" in (tmp_path / "log").read_text()


def test_kill_is_sigkill(tmp_path: Path) -> None:
    process = start(["sleep", "60"], tmp_path)
    process.kill()
    assert process.exit_code == 128 + signal.SIGKILL
    assert is_gone_within(process.pid, 1)


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    process = start(["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"], tmp_path)
    while not (tmp_path / "log").read_text():
        time.sleep(0.02)
    process.stop(patience_seconds=0.3)
    assert process.exit_code == 128 + signal.SIGKILL


def test_lives_on_when_the_thread_that_started_it_ends(tmp_path: Path) -> None:
    started: list[Process] = []
    thread = threading.Thread(target=lambda: started.append(start(["sleep", "60"], tmp_path)))
    thread.start()
    thread.join()
    assert not is_gone_within(started[0].pid, 0.5)
    started[0].kill()


@pytest.mark.parametrize("victim", ["parent", "launcher"])
def test_dies_with_those_above_it(victim: str, tmp_path: Path) -> None:
    script = f"""
        import os, time
        from pathlib import Path
        from tests.integration.servers.process import Process
        folder = Path({str(tmp_path)!r})
        process = Process(["sleep", "60"], cwd=folder, env=os.environ, log=folder / "log")
        print(process.pid, process._launcher.pid, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server, launcher = map(int, parent.stdout.readline().split())
        os.kill({"parent": parent.pid, "launcher": launcher}[victim], signal.SIGKILL)
        gone = is_gone_within(server, 5)
        parent.kill()
    assert gone
