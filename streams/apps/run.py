"""Runs a role under Faust until it is told to stop, and stops it within seconds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from streams.apps.driver import CheckRejects, Driver

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import faust

    from schemas.flow import Processor
    from schemas.status import RunnerStatus
    from streams.apps.connection import FaustConnection
    from streams.apps.driver import AsyncPublish
    from streams.apps.places import PlaceReader

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.1
_COMMIT_SECONDS: Final = 0.7
_STOP_SECONDS: Final = 1.3
"""The supervisor kills three seconds after SIGTERM (ARCHITECTURE §6.7)."""


def never_too_many(_role: str, _records: int, _rejected: int, _reason: str) -> None:
    """The CheckRejects of a role that may reject everything."""


class FaustRunner:
    """One role under Faust.

    `open_reader` gives what `restore` reads with. `on_progress` (the watchdog's beat) is called whenever something moved; `has_work`
    tells the watchdog whether something should. `clock` is the wall clock, ns UTC.
    """

    def __init__(
        self,
        processor: Processor,
        connection: FaustConnection,
        *,
        publish: AsyncPublish,
        open_reader: Callable[[], AbstractContextManager[PlaceReader]],
        status: RunnerStatus,
        on_progress: Callable[[], None] = lambda: None,
        check_rejects: CheckRejects = never_too_many,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._inputs = processor.inputs
        self._connection = connection
        self.driver = Driver(
            processor,
            publish=publish,
            open_reader=open_reader,
            status=status,
            clock=clock,
            on_progress=on_progress,
            check_rejects=check_rejects,
        )

    def has_work(self) -> bool:
        return self.driver.has_work()

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set. Raises what ended the role otherwise."""
        _quiet()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._live(stop))
        finally:
            asyncio.set_event_loop(None)
            loop.close()
        if self.driver.failure is not None and not stop.is_set():
            raise self.driver.failure

    async def _live(self, stop: threading.Event) -> None:
        import faust

        from streams.apps.app import build

        self._connection.state_folder.mkdir(parents=True, exist_ok=True)
        app = build(self.driver, self._inputs, self._connection)
        loop = asyncio.get_running_loop()
        worker = faust.Worker(app, redirect_stdouts=False, override_logging=False, quiet=True, loop=loop)
        worker.spinner = None
        worker.install_signal_handlers = lambda: None  # the shell's stop event stands for them
        running = asyncio.ensure_future(worker.start())
        try:
            # `stop` is a thread's event, set by a signal handler: it has to be looked at
            while not (stop.is_set() or self.driver.failed.is_set() or running.done()):
                await asyncio.sleep(_LOOK_SECONDS)
                if (error := app.consumer.ended()) is not None:
                    raise RuntimeError(f"group {self._connection.group}: {error}") from error
            if running.done():
                running.result()
                raise worker.crash_reason or RuntimeError("Faust ended by itself")
        finally:
            await _stop(app, worker, running)


async def _stop(app: faust.App, worker: faust.Worker, running: asyncio.Future[Any]) -> None:
    """Commit what is done, then end Faust; what does not end in time is left to the end of the process."""
    with contextlib.suppress(Exception):
        await asyncio.wait_for(app.consumer.commit(), _COMMIT_SECONDS)
    with contextlib.suppress(Exception):
        await asyncio.wait_for(worker.stop(), _STOP_SECONDS)
    running.cancel()
    leftover = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in leftover:
        task.cancel()
    if leftover:
        await asyncio.wait(leftover, timeout=0.2)


def _quiet() -> None:
    """Faust tells every rebalance at length; of it and its libraries only warnings are kept."""
    for name in ("faust", "mode", "aiokafka", "streams.apps.app"):
        logging.getLogger(name).setLevel(logging.WARNING)
