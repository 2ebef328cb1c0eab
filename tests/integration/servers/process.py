"""One server process: started through the launcher, its output in a file, ended politely or by SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launcher.py")


class Process:
    """A running command that ends with this process, however this process ends."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> None:
        # Its own session: Ctrl-C reaches the tests, which then end the servers in their order.
        with log.open("ab") as output:
            self._launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), *command],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        assert self._launcher.stdout is not None
        self.pid = int(self._launcher.stdout.readline())

    @property
    def exit_code(self) -> int | None:
        """The exit code (128 + n after signal n), or None while it runs."""
        return self._launcher.poll()

    def kill(self) -> None:
        """End it at once (SIGKILL), and wait until it is gone."""
        self._end(signal.SIGKILL, patience_seconds=10.0)

    def stop(self, *, patience_seconds: float) -> None:
        """Ask it to end (SIGTERM); kill it when it has not after `patience_seconds`."""
        try:
            self._end(signal.SIGTERM, patience_seconds=patience_seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def _end(self, signal_number: signal.Signals, *, patience_seconds: float) -> None:
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal_number)
            self._launcher.wait(patience_seconds)
        assert self._launcher.stdout is not None
        self._launcher.stdout.close()
