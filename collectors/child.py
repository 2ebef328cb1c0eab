"""The agent's hold on one plugin process: start it, hear it, end it for certain."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from collectors.frames import Listener, Word
from collectors.whereabouts import Notes, Place, make

_READ_BYTES: Final = 1 << 20


class Child:
    """A running `collectors.worker`. `fd` is readable when it has said something, and at its end."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        """Starts the process. `order` is what the worker is to do (see collectors.worker.Worker).

        Raises OSError where the host has no room for another one: no memory, process ids or file descriptors.
        """
        self.fd, theirs = os.pipe()
        os.set_blocking(self.fd, False)
        # The child finds what this interpreter finds, wherever it was started from; -P keeps its working folder out of it.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        whereabouts = make()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "collectors.worker", str(theirs)],
                stdin=subprocess.PIPE,
                stdout=2,  # a vendor library that prints must not reach our stdout
                pass_fds=[theirs, whereabouts],
                env=os.environ | {"PYTHONPATH": path},
            )
            self._notes = Notes(whereabouts)
        except OSError:
            os.close(self.fd)
            raise
        finally:
            os.close(theirs)
            os.close(whereabouts)
        self._listener = Listener()
        self.ended = False
        own = {"whereabouts": whereabouts, "agent_pid": os.getpid(), "pythonpath": os.environ.get("PYTHONPATH")}
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once; its end is seen on the pipe
            self._process.stdin.write(json.dumps({**order, **own}).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        return self._process.pid

    def place(self) -> Place | None:
        """What it asked about last, and is not past."""
        return self._notes.read()

    def hear(self) -> Iterator[Word]:
        """What it has said; sets `ended` when it will say no more. Raises frames.Broken on nonsense."""
        try:
            data = os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.ended = True
            return
        yield from self._listener.feed(data)

    def end(self) -> None:
        """Ask it to close its driver and go: the end of its stdin says so."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()

    def gone(self, wait_seconds: float = 0.0) -> bool:
        """Whether the process has ended. One stuck in the kernel does not die of SIGKILL before its call returns."""
        if wait_seconds > 0:
            try:
                self._process.wait(wait_seconds)
            except subprocess.TimeoutExpired:
                return False
        return self._process.poll() is not None

    def ended_well(self) -> bool:
        return self._process.poll() == 0

    def how_it_ended(self) -> str:
        code = self._process.poll()
        if code is None:
            return "closed its pipe and still runs"
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def close(self) -> None:
        """Release the pipes."""
        os.close(self.fd)
        self._notes.close()
        self.end()


def end_all(children: list[Child], *, grace_seconds: float = 1.0, kill_seconds: float = 0.5) -> None:
    """End every child: asked first, killed after the grace; what sticks in the kernel is left to die with its call."""
    for child in children:
        child.end()
    until = time.monotonic() + grace_seconds
    left = [child for child in children if not child.gone(max(0.001, until - time.monotonic()))]
    for child in left:
        child.kill()
    until = time.monotonic() + kill_seconds
    for child in left:
        child.gone(max(0.001, until - time.monotonic()))
    for child in children:
        child.close()
