"""One supervised process: started in a session of its own, restarted with back-off when it dies, stopped with its whole group."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Literal

from xpulse.errors import GIVEN_UP
from xpulse.process import PARENT, pss_bytes

FIRST_RESTART_SECONDS: Final = 0.5
LONGEST_RESTART_SECONDS: Final = 30.0
STABLE_SECONDS: Final = 30.0
"""A process that lived this long starts with the shortest back-off again."""

State = Literal["waiting", "running", "backing off", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run: `arguments` follow the interpreter. `stage` orders the start (0 first)."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stage: int = 0


class Child:
    """A process and its history. `poll` is called often with `time.monotonic()`; nothing here sleeps."""

    def __init__(self, spec: Spec, log: Path) -> None:
        self.spec = spec
        self.log = log
        self.state: State = "waiting"
        self.restarts = 0
        self.exits: list[int] = []
        self.peak_pss_bytes = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._next_start_at = 0.0
        self._backoff_seconds = FIRST_RESTART_SECONDS

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self, now: float, stdout: int | None = None) -> None:
        """Start it. Output goes to its log file (or, for stdout, the descriptor given)."""
        sink: IO[bytes]
        with self.log.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, *self.spec.arguments],
                env={**os.environ, **self.spec.environment, PARENT: str(os.getpid())},
                stdin=subprocess.DEVNULL,
                stdout=stdout if stdout is not None else sink,
                stderr=sink,
                start_new_session=True,  # Ctrl-C in the terminal reaches the supervisor only
            )
        self.state = "running"
        self._started_at = now

    def poll(self, now: float) -> int | None:
        """Restart where due; returns the exit code when it is first seen dead, else None."""
        if self.state == "backing off" and now >= self._next_start_at:
            self.restarts += 1
            self.start(now)
            return None
        if self.state != "running" or self._process is None:
            return None
        code = self._process.poll()
        if code is None:
            return None
        self.exits.append(code)
        self._kill_group()
        if code in (2, GIVEN_UP):  # wrong use or configuration, or it would do harm: starting it again changes nothing
            self.state = "failed"
            return code
        if now - self._started_at > STABLE_SECONDS:
            self._backoff_seconds = FIRST_RESTART_SECONDS
        self.state = "backing off"
        self._next_start_at = now + self._backoff_seconds
        self._backoff_seconds = min(self._backoff_seconds * 2, LONGEST_RESTART_SECONDS)
        return code

    def measure(self) -> None:
        """Note the memory of its tree; the peak is kept."""
        if pid := self.pid:
            self.peak_pss_bytes = max(self.peak_pss_bytes, pss_bytes(pid))

    def terminate(self) -> None:
        """Ask it to end."""
        self.state = "stopped"
        if self._process and self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """End it and everything it started, now."""
        self.state = "stopped"
        self._kill_group()
        if self._process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)

    def gone(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def tail(self, lines: int = 8) -> str:
        """The last lines of its log."""
        try:
            return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def _kill_group(self) -> None:
        if self._process:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
