"""Runs a stream processor under Faust, framed: our bus settings in Faust's words, one idempotent publisher, one watchdog."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from schemas.status import RunnerStatus
from streams.apps.connection import FaustConnection
from streams.apps.run import FaustRunner
from xpulse.bus.producer import AsyncPublisher
from xpulse.bus.reader import BusReader
from xpulse.bus.rejects import RejectWindow
from xpulse.bus.settings import secret
from xpulse.bus.watchdog import Watchdog, reachable
from xpulse.run.frame import framed
from xpulse.run.report import noted_by, of_runner

if TYPE_CHECKING:
    from pathlib import Path

    from schemas.flow import Processor
    from xpulse.bus.settings import Bus
    from xpulse.settings import Settings

log = logging.getLogger(__name__)


def connection(bus: Bus, role: str, state: Path) -> FaustConnection:
    """The same keys that the librdkafka clients take, for Faust. Raises ValueError on a secret's file that cannot be read."""
    return FaustConnection(
        brokers=bus.brokers,
        group=bus.group(role),
        state_folder=state / "faust" / role,
        prefix=bus.topic_prefix,
        embedded=bus.embedded,
        session_timeout_seconds=bus.session_seconds(),
        instance=None if bus.embedded else f"{role}-{bus.instance_ordinal}",
        protocol=bus.security_protocol,
        mechanism=bus.sasl_mechanism,
        username=bus.username,
        password=secret(bus.password, bus.password_file, "password") or "",
        ca_file=bus.ca_file,
        cert_file=bus.cert_file,
        key_file=bus.key_file,
        key_password=secret(bus.key_password, bus.key_password_file, "key_password"),
    )


def run(settings: Settings, processor: Processor) -> int:
    """Until a signal; 0. Raises ProblemFound where the role cannot go on."""
    bus, role = settings.bus, processor.role
    status = RunnerStatus(role)
    with framed(settings, role, lambda: of_runner(status, noted_by(processor))) as stop:
        publisher = AsyncPublisher(bus, bus.group(role), on_retry=lambda reason: runner.driver.note_retry(reason))
        runner = FaustRunner(
            processor,
            connection(bus, role, settings.state()),
            publish=publisher,
            open_reader=lambda: BusReader(bus, stop=stop, on_step=lambda: watchdog.beat()),
            status=status,
            on_progress=lambda: watchdog.beat(),
            check_rejects=RejectWindow().note,
        )
        watchdog = Watchdog(runner.has_work, lambda: reachable(bus.brokers))
        with watchdog:
            try:
                runner.run(stop)
            finally:
                publisher.close(0.5)
    _leave_idle_threads()
    return 0


def _leave_idle_threads() -> None:
    """Executor threads of Faust that wait for nothing must not hold up the end of a process that has committed and closed everything."""
    if any(t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon):
        logging.shutdown()
        os._exit(0)
