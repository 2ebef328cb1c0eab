"""A process is restarted with back-off, stopped with everything it started, and its memory is known."""

import time
from pathlib import Path

import pytest

from xpulse.errors import UsageError
from xpulse.local.child import FIRST_RESTART_SECONDS, Child, Spec
from xpulse.local.lock import StackLock
from xpulse.process import pss_bytes, tree


def wait_until(condition, seconds: float = 10.0) -> bool:  # type: ignore[no-untyped-def]  # any callable
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return False


def child(tmp_path: Path, code: str) -> Child:
    return Child(Spec("it", ("-c", code)), tmp_path / "it.log")


def test_restarted_with_growing_back_off(tmp_path: Path) -> None:
    it = child(tmp_path, "import sys; sys.exit(3)")
    it.start(0.0)
    assert wait_until(it.gone)
    assert it.poll(0.1) == 3
    assert it.state == "backing off"
    assert it.poll(0.1 + FIRST_RESTART_SECONDS - 0.01) is None
    assert it.restarts == 0
    it.poll(0.1 + FIRST_RESTART_SECONDS)
    assert it.restarts == 1
    assert wait_until(it.gone)
    it.poll(1.0)
    it.poll(1.0 + FIRST_RESTART_SECONDS)
    assert it.restarts == 1, "the second wait is longer"
    it.poll(1.0 + 2 * FIRST_RESTART_SECONDS)
    assert it.restarts == 2
    assert wait_until(it.gone)
    it.kill()


def test_wrong_configuration_is_not_tried_again(tmp_path: Path) -> None:
    it = child(tmp_path, "import sys; sys.stderr.write('cluster is not set\\n'); sys.exit(2)")
    it.start(0.0)
    assert wait_until(it.gone)
    assert it.poll(1.0) == 2
    assert it.state == "failed"
    assert "cluster is not set" in it.tail()


def test_kill_takes_the_grandchildren_too(tmp_path: Path) -> None:
    code = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); time.sleep(60)"
    it = child(tmp_path, code)
    it.start(0.0)
    assert it.pid
    pid = it.pid
    assert wait_until(lambda: len(tree(pid)) == 2)
    pids = tree(pid)
    it.measure()
    assert it.peak_pss_bytes > 1_000_000
    it.kill()
    assert wait_until(lambda: not any(Path(f"/proc/{p}/stat").exists() and " Z " not in Path(f"/proc/{p}/stat").read_text() for p in pids))


def test_memory_of_a_gone_process_is_zero() -> None:
    assert pss_bytes(2**22 - 3) == 0


def test_a_second_stack_is_told_of_the_first(tmp_path: Path) -> None:
    with StackLock(tmp_path), pytest.raises(UsageError, match="already running") as error, StackLock(tmp_path):
        pass
    assert error.value.exit_code == 2
    assert not (tmp_path / "up.lock").exists()
    with StackLock(tmp_path):
        pass
