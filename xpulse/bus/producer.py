"""Publishers that lose nothing: every message is acknowledged by the broker before a call returns, however long that takes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from xpulse.bus.outgoing import again, plan
from xpulse.bus.sending import BACKOFF_SECONDS, Attempt, Sender

if TYPE_CHECKING:
    from schemas.flow import Emitted, Out
    from xpulse.bus.settings import Bus

OnRetry = Callable[[str], None]
"""Called with the reason each time that a publisher goes on waiting for the broker."""

_WAIT_SECONDS: Final = 0.25


class Stopped(Exception):
    """The role was told to stop while messages were not yet acknowledged; their input is not committed and comes again."""


class _Totals:
    """What was acknowledged so far, and how often the broker had to be waited for."""

    def __init__(self, group: str, on_retry: OnRetry | None) -> None:
        self._group = group
        self._on_retry = on_retry
        self.published_total = 0
        self.dead_letters_total = 0
        self.retries_total = 0

    def _retry(self, reason: str) -> None:
        self.retries_total += 1
        if self._on_retry is not None:
            self._on_retry(reason)


class Publisher(_Totals):
    """Sends what processors emit and waits until the broker has it. Used from one thread.

    `stop` set while waiting raises Stopped; nothing else is ever raised.
    """

    def __init__(self, bus: Bus, group: str, *, stop: threading.Event | None = None, on_retry: OnRetry | None = None) -> None:
        super().__init__(group, on_retry)
        self._stop = stop or threading.Event()
        self._sender = Sender(bus)

    def publish(self, emitted: Sequence[Emitted]) -> None:
        """Send all, in order, and return when every one is acknowledged (as an output or as a dead letter)."""
        if not emitted:
            return
        planned = plan(emitted, self._group)
        for segment in planned.segments:
            self._send(segment)
        self.published_total += planned.published
        self.dead_letters_total += planned.dead_letters

    def close(self) -> None:
        """Let go; `publish` left nothing to wait for."""
        self._sender.give_up()

    def _send(self, outs: list[Out]) -> None:
        tries = 0
        while outs:
            attempt = Attempt(outs)
            while not self._sender.start(attempt):
                self._wait()
            while attempt.left:
                self._wait()
            if not attempt.failed:
                return
            outs, recreate = again(outs, attempt.failed, self._group)
            self._retry(attempt.why())
            if recreate or self._sender.fatal:
                self._sender.recreate(attempt.why())
            if self._stop.wait(BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS) - 1)]):
                raise Stopped
            tries += 1

    def _wait(self) -> None:
        if self._sender.poll(_WAIT_SECONDS) == 0:
            if self._stop.is_set():
                raise Stopped
            self._retry("no answer from the broker")


class AsyncPublisher(_Totals):
    """The same for asyncio: `await publisher(emitted)` returns when all is acknowledged; the calls of several tasks overlap.

    Used from one event loop. Cancelling the awaiting task leaves its messages to be delivered.
    """

    def __init__(self, bus: Bus, group: str, *, on_retry: OnRetry | None = None) -> None:
        super().__init__(group, on_retry)
        self._sender = Sender(bus)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="publisher", daemon=True)
        self._thread.start()

    async def __call__(self, emitted: Sequence[Emitted]) -> None:
        """Send all, in order, and return when every one is acknowledged (as an output or as a dead letter). Never raises."""
        if not emitted:
            return
        planned = plan(emitted, self._group)
        for segment in planned.segments:
            await self._send(segment)
        self.published_total += planned.published
        self.dead_letters_total += planned.dead_letters

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Wait for what is under way, at most so long, and end the delivery thread."""
        self._sender.producer.flush(timeout_seconds)
        self._closing.set()
        self._thread.join(timeout_seconds)

    async def _send(self, outs: list[Out]) -> None:
        tries = 0
        while outs:
            attempt = await self._attempt(outs)
            if not attempt.failed:
                return
            outs, recreate = again(outs, attempt.failed, self._group)
            self._retry(attempt.why())
            if recreate or self._sender.fatal:
                self._sender.recreate(attempt.why())
            await asyncio.sleep(BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS) - 1)])
            tries += 1

    async def _attempt(self, outs: list[Out]) -> Attempt:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        attempt = Attempt(outs, lambda: _call_soon(loop, done))
        # its queue may be full; heartbeats go out from this event loop, so never block it
        while not self._sender.start(attempt):  # noqa: ASYNC110  # librdkafka has no event for "room again"
            await asyncio.sleep(0.01)
        while not done.is_set():
            try:
                await asyncio.wait_for(done.wait(), 1.0)
            except TimeoutError:
                self._retry("no answer from the broker")
        return attempt

    def _serve(self) -> None:
        while not self._closing.is_set():
            self._sender.poll(0.1)


def _call_soon(loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(done.set)
