"""A whole `xpulse up` as a process of its own, with everything it wrote, and what is left of it afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tests.integration.stack import PATIENCE_SECONDS, STOP_SECONDS, clean_environment, wait_for

_T = TypeVar("_T")


def processes_of(state: Path) -> dict[int, str]:
    """Living processes that were given this state folder, and their commands: nothing of a stack may outlive it."""
    mark = f"XPULSE_STATE_DIR={state}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
    return found


class Up:
    """A running `xpulse up` in a working folder of its own, with everything it wrote."""

    def __init__(self, folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.work, self.state = folder / "work", folder / "state"
        self.log = folder / "up.log"
        self.work.mkdir(parents=True)
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "xpulse.cli.main", "up", *options],
                cwd=self.work,
                env=clean_environment(self.state, environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def __enter__(self) -> Up:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            sys.stderr.write(self.logs())
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(STOP_SECONDS)

    def until(self, found: Callable[[], _T | None], what: str, *, seconds: float = PATIENCE_SECONDS) -> _T:
        """Wait for an answer, and fail at once where the stack has ended."""

        def look() -> _T | None:
            answer = found()
            assert answer or self.process.poll() is None, f"xpulse up ended with {self.process.poll()} before: {what}\n{self.logs()}"
            return answer

        return wait_for(look, what, say=self.logs, seconds=seconds)

    def logs(self) -> str:
        """The end of its own output and of each role's log."""
        files: Sequence[Path] = [self.log, *sorted((self.state / "logs").glob("*.log"))]
        return "".join(f"--- {f.name}\n" + "\n".join(f.read_text(errors="replace").splitlines()[-15:]) + "\n" for f in files)
