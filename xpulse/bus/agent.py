"""The agent's publisher: takes batches without waiting, says Busy when its memory is full, and counts what the broker acknowledged."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from schemas.flow import Busy
from schemas.topics import MAX_VALUE_BYTES
from xpulse.bus.outgoing import verdict
from xpulse.bus.sending import BACKOFF_SECONDS, Attempt, Sender

if TYPE_CHECKING:
    from schemas.flow import Out
    from xpulse.bus.settings import Bus

_RETRY_SECONDS: Final = 1.0
_MESSAGE_OVERHEAD_BYTES: Final = 256  # librdkafka's own record of a queued message, headers included


@dataclass(slots=True)
class AgentTotals:
    """Messages taken by `offer`: acknowledged by the broker, failed for ever (by reason), or not yet answered."""

    acknowledged: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    unacknowledged: int = 0
    unacknowledged_bytes: int = 0
    last_ack_ns: int = 0
    """Wall clock of the newest acknowledgement, ns UTC; 0 before the first."""


class AgentPublisher:
    """Sends in the background. A broker outage loses nothing as long as what is not acknowledged fits `bus.queue_bytes`."""

    def __init__(self, bus: Bus, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._limit_bytes = bus.queue_bytes
        self._now_ns = now_ns
        self._sender = Sender(bus, linger_ms=bus.linger_ms)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._pending: list[Attempt] = []
        self.totals = AgentTotals()
        self._thread = threading.Thread(target=self._serve, name="publisher", daemon=True)
        self._thread.start()

    def offer(self, outs: Sequence[Out]) -> None:
        """Take all of these or, when the memory is full, none and raise Busy. Order within a call and between calls is kept."""
        if not outs:
            return
        total = sum(map(_size, outs))
        with self._lock:
            if self.totals.unacknowledged and self.totals.unacknowledged_bytes + total > self._limit_bytes:
                waiting = self.totals.unacknowledged
                raise Busy(
                    _RETRY_SECONDS, f"bus: {waiting} messages are not acknowledged yet and fill bus.queue_bytes ({self._limit_bytes})"
                )
            taken = []
            for out in outs:
                if out.value is not None and len(out.value) > MAX_VALUE_BYTES:
                    self.totals.failed["too_large"] += 1
                else:
                    taken.append(out)
            self.totals.unacknowledged += len(taken)
            self.totals.unacknowledged_bytes += sum(map(_size, taken))
            self._begin(taken)

    def close(self, timeout_seconds: float) -> int:
        """Wait at most so long for acknowledgements; how many messages are still without one (they are lost with the process)."""
        deadline = time.monotonic() + timeout_seconds
        while self.totals.unacknowledged and time.monotonic() < deadline:
            self._sender.producer.flush(min(0.2, timeout_seconds))
        self._closing.set()
        self._thread.join(2.0)
        left = self.totals.unacknowledged
        self._sender.give_up()
        return left

    def _begin(self, outs: Sequence[Out]) -> None:
        attempt = Attempt(outs)
        self._pending.append(attempt)
        self._sender.start(attempt)

    def _serve(self) -> None:
        tries = 0
        while not self._closing.is_set():
            self._sender.poll(0.1)
            with self._lock:
                failed = self._settle()
            if failed:
                self._closing.wait(BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS) - 1)])
                tries += 1
            else:
                tries = 0

    def _settle(self) -> bool:
        """Count what was answered and send again what failed for now; whether anything did."""
        kept: list[Attempt] = []
        left: list[Out] = []
        why = ""
        for attempt in self._pending:
            if attempt.sent < len(attempt.outs):
                self._sender.start(attempt)
            if attempt.left:
                kept.append(attempt)
                continue
            for index, out in enumerate(attempt.outs):
                error = attempt.failed.get(index)
                if error is not None and verdict(error) != "refused":
                    left.append(out)
                    why = error.str()
                    continue
                self.totals.unacknowledged -= 1
                self.totals.unacknowledged_bytes -= _size(out)
                if error is None:
                    self.totals.acknowledged += 1
                    self.totals.last_ack_ns = self._now_ns()
                else:
                    self.totals.failed["refused"] += 1
        self._pending = kept
        if self._sender.fatal and not kept:
            self._sender.recreate(why or "fatal error")
        if left:
            self._begin(left)
        return bool(left)


def _size(out: Out) -> int:
    return len(out.key) + len(out.value or b"") + _MESSAGE_OVERHEAD_BYTES
