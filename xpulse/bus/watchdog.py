"""Ends a process that has work, a broker and no progress: a consumer that silently stopped consuming is started anew (streams.md §7)."""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Final

EXIT_STUCK: Final = 70
"""sysexits.h EX_SOFTWARE: the supervisor restarts on any exit; this one is told apart in its log."""

STUCK_SECONDS: Final = 60.0


class Watchdog:
    """`beat()` says that something moved. After `limit_seconds` without, with work and a reachable broker, `on_stuck` is called."""

    def __init__(
        self,
        has_work: Callable[[], bool],
        reachable: Callable[[], bool],
        *,
        on_stuck: Callable[[], None] | None = None,
        limit_seconds: float = STUCK_SECONDS,
    ) -> None:
        self._has_work = has_work
        self._reachable = reachable
        self._on_stuck = on_stuck or die
        self._limit_seconds = limit_seconds
        self._beats = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(1.0)

    def beat(self) -> None:
        self._beats += 1

    def _watch(self) -> None:
        seen, idle_seconds, step_seconds = self._beats, 0.0, self._limit_seconds / 12
        while not self._closing.wait(step_seconds):
            if self._beats != seen or not self._has_work():
                seen, idle_seconds = self._beats, 0.0
                continue
            idle_seconds += step_seconds
            if idle_seconds >= self._limit_seconds:
                if self._reachable():
                    self._on_stuck()
                idle_seconds = 0.0


def die() -> None:
    """Write every thread's stack to stderr and end the process at once."""
    faulthandler.dump_traceback(file=sys.__stderr__ or 2, all_threads=True)
    os._exit(EXIT_STUCK)


def reachable(brokers: str, timeout_seconds: float = 2.0) -> bool:
    """Whether one of `host:port,host:port` accepts a connection."""
    for address in brokers.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]") or address.strip(), int(port or 9092)), timeout_seconds).close()
        except (OSError, ValueError):
            continue
        return True
    return False
