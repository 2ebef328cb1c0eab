"""What the real servers have in common: a folder of their own, a life of starts and ends in it, a log to show."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.integration.servers.process import Process
from tests.integration.servers.progress import Progress
from tests.integration.servers.toolchain import tail

POLL_SECONDS = 0.05


class StartFailed(Exception):
    """The server was built and did not become ready; the text ends with the tail of its log."""


class Server(ABC):
    """A real server on loopback: its ports and data stay the same from the first `start` to `close`.

    As a context manager it starts on entry and is closed, its folder removed, on exit. A killed server starts again
    with `start()`. It never outlives this process.
    """

    name: str
    start_patience_seconds = 60.0
    stop_patience_seconds = 20.0

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._process: Process | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """The server's own temporary folder: settings, data, log."""
        if self._folder is None:
            raise RuntimeError(f"{self.name} was not started: call start() first")
        return self._folder

    @property
    def log(self) -> Path:
        """What the server wrote, over all its lives."""
        return self.folder / "server.log"

    @property
    def pid(self) -> int:
        """The process id of the server itself."""
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running: call start() first")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.exit_code is None

    def start(self) -> None:
        """Start it, building it first where the cache lacks it, and return when it serves."""
        if self.running:
            return
        self.kill()  # forgets a process that ended by itself
        build = self._prepare(Progress(self.name))
        if self._folder is None:
            self._settle(build)
        command, env = self._command(build)
        self._process = Process(command, cwd=build, env=env, log=self.log)
        try:
            self._await_ready()
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End it at once by SIGKILL, keeping its data as it lies."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def stop(self) -> None:
        """End it politely, keeping its data."""
        if self._process is not None:
            self._process.stop(patience_seconds=self.stop_patience_seconds)
            self._process = None

    def restart(self) -> None:
        """Stop it and start it again with the same ports and data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it for good and remove its folder."""
        self.kill()
        atexit.unregister(self.close)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _settle(self, build: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=f"xpulse-{self.name}-"))
        atexit.register(self.close)
        try:
            self._lay_out(build)
        except BaseException:
            self.close()
            raise

    def _await_ready(self) -> None:
        """Try until the server serves; a dead process or the end of patience is a StartFailed with its log."""
        deadline = time.monotonic() + self.start_patience_seconds
        said = "no answer yet"
        while time.monotonic() < deadline:
            if self._process is None or self._process.exit_code is not None:
                code = None if self._process is None else self._process.exit_code
                raise StartFailed(f"{self.name} ended with {code} while starting:\n{tail(self.log)}")
            try:
                self._check_ready()
            except NotReady as error:
                said = str(error)
                time.sleep(POLL_SECONDS)
            else:
                return
        raise StartFailed(f"{self.name} did not serve within {self.start_patience_seconds:.0f} s ({said}):\n{tail(self.log)}")

    @abstractmethod
    def _prepare(self, progress: Progress) -> Path:
        """The folder of the built server; raises Missing."""

    @abstractmethod
    def _lay_out(self, build: Path) -> None:
        """Write settings and format storage in the new folder: once, before the first start."""

    @abstractmethod
    def _command(self, build: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command, to be run in the folder of the built server, and its environment."""

    @abstractmethod
    def _check_ready(self) -> None:
        """Return when it serves; raise NotReady to be asked again."""


class NotReady(Exception):
    """The server does not serve yet; the text says what it answered."""
