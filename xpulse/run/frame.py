"""What every role's process does around its work: logging, dying with the supervisor, signals, the health endpoint and its port file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xpulse import logs
from xpulse.health import HealthServer, Report
from xpulse.local.runfiles import write_port
from xpulse.process import PARENT, collect_garbage_seldom, die_with_parent, stop_on_signals
from xpulse.roles import role as find

if TYPE_CHECKING:
    from xpulse.settings import Settings


@contextmanager
def framed(
    settings: Settings, role: str, report: Callable[[], Report], *, serve: Callable[[bool], HealthServer] | None = None, bus: bool = True
) -> Iterator[threading.Event]:
    """Yields the stop event. In the local stack a busy documented port is replaced by a free one; elsewhere it is an error (exit 2).

    `serve` opens the endpoint in place of the usual one; it is told whether this is the local stack. Without a `bus` no cluster's name
    is needed.
    """
    die_with_parent()
    logs.set_up(role, settings.log)
    if bus:
        settings.require_cluster()
    stop = stop_on_signals()
    supervised = PARENT in os.environ
    if serve is not None:
        server = serve(supervised)
    else:
        port = settings.health.port if settings.health.port is not None else find(role).port
        server = HealthServer(settings.health.host, port, report, fall_back=supervised)
    if supervised:
        write_port(settings.state(), role, server.port)
    collect_garbage_seldom()
    try:
        yield stop
    finally:
        server.close()
