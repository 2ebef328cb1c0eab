"""Sends what is known to the endpoint, in a thread of its own: the agent's loop never waits for the network."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from schemas.otlp import Origin, requests
from xpulse.northbound.otlp.outcome import Later, Outcome, Refused
from xpulse.northbound.otlp.waiting import Packed, Waiting

if TYPE_CHECKING:
    from schemas.device_state import FleetState
    from xpulse.northbound.otlp.settings import Otlp

log = logging.getLogger(__name__)

_SAY_SECONDS: Final = 60.0
"""How often the same kind of refusal is logged."""


class Transport(Protocol):
    def send(self, packed: Packed, timeout_seconds: float) -> Outcome:
        """Never raises."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OtlpTotals:
    """Since the start. Counts are data points, except `retries` (requests tried again, by reason). `last_success_ns`: ns UTC, 0 never."""

    sent: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    """Refused for good, by reason: `partial` (a part of a request), http_400, unauthenticated ..."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Never got an answer: queue_full, shutdown."""
    retries: Mapping[str, int] = field(default_factory=dict)
    waiting_points: int = 0
    waiting_bytes: int = 0
    last_success_ns: int = 0
    trouble: str = ""
    """Why nothing can be delivered now; empty while it works."""


class Push:
    """`turn` does what is due and says when the next thing is; `start` runs it in a thread until `close`."""

    def __init__(
        self,
        settings: Otlp,
        origin: Origin,
        state: Callable[[int], FleetState],
        transport: Transport,
        *,
        clock: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._settings, self._origin, self._state, self._transport = settings, origin, state, transport
        self._clock, self._monotonic, self._jitter = clock, monotonic, jitter
        self._waiting = Waiting(settings.queue_bytes)
        self._collect_at = monotonic() + settings.interval_seconds
        self._try_at = 0.0
        self._tries = 0
        self._sent = self._last_success_ns = 0
        self._failed: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._retries: Counter[str] = Counter()
        self._trouble = ""
        self._said_at: dict[str, float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._flush_until = 0.0
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)

    def totals(self) -> OtlpTotals:
        with self._lock:
            return OtlpTotals(
                self._sent,
                dict(self._failed),
                dict(self._dropped),
                dict(self._retries),
                self._waiting.points,
                self._waiting.size_bytes,
                self._last_success_ns,
                self._trouble,
            )

    def start(self) -> None:
        self._thread.start()

    def close(self, patience_seconds: float) -> None:
        """Send what is known now and what waits, for `patience_seconds` at the most; what is left is counted as dropped."""
        self._flush_until = self._monotonic() + patience_seconds
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(patience_seconds)
        self._transport.close()
        with self._lock:
            left = self._waiting.points
            self._dropped["shutdown"] += left
        if left:
            log.warning("points were not delivered before the end", extra={"points": left, "why": self._trouble or "no time"})

    def turn(self) -> float:
        """Take a state in if it is due, send at most one request; seconds until something is due again."""
        now = self._monotonic()
        if now >= self._collect_at:
            self.collect()
            planned = self._collect_at + self._settings.interval_seconds
            self._collect_at = planned if planned > now else now + self._settings.interval_seconds
        if self._waiting and self._monotonic() >= self._try_at:
            self._deliver(self._settings.timeout_seconds)
        due = min(self._collect_at, self._try_at) if self._waiting else self._collect_at
        return max(0.0, due - self._monotonic())

    def collect(self) -> None:
        """Put what is known now into the queue."""
        for request in requests(self._state(self._clock()), self._origin, self._settings.max_points):
            packed = Packed.of(request.message.SerializeToString(), request.points)
            with self._lock:
                if lost := self._waiting.put(packed):
                    self._dropped["queue_full"] += lost

    def _run(self) -> None:
        while not self._stop.wait(self._guarded(self.turn)):
            pass
        self._guarded(self._flush)

    def _guarded(self, step: Callable[[], float]) -> float:
        """A defect of ours must not end the push silently, nor spin."""
        try:
            return step()
        except Exception:
            log.exception("otlp push failed; it goes on")
            return self._settings.retry_max_seconds

    def _flush(self) -> float:
        self.collect()
        while self._waiting and (left := self._flush_until - self._monotonic()) > 0:
            if not self._deliver(min(left, self._settings.timeout_seconds)):
                break
        return 0.0

    def _deliver(self, timeout_seconds: float) -> bool:
        """Send the oldest request; whether it is settled."""
        packed = self._waiting.head()
        outcome = self._transport.send(packed, timeout_seconds)
        now = self._monotonic()
        if isinstance(outcome, Later):
            self._later(outcome, now)
            return False
        with self._lock:
            self._waiting.pop()
            self._tries, self._try_at = 0, now
            rejected = packed.points if isinstance(outcome, Refused) else min(outcome.rejected, packed.points)
            reason = outcome.reason if isinstance(outcome, Refused) else "partial"
            self._sent += packed.points - rejected
            if rejected:
                self._failed[reason] += rejected
            if not isinstance(outcome, Refused):
                self._last_success_ns = self._clock()
            was, self._trouble = self._trouble, f"{reason}: {outcome.said}" if isinstance(outcome, Refused) else ""
        if was and not self._trouble:
            log.info("the otlp endpoint takes metrics again", extra={"endpoint": self._settings.endpoint})
        if rejected or outcome.said:
            self._say(reason, "the otlp endpoint refused points" if rejected else "the otlp endpoint warns", outcome.said, rejected, now)
        return True

    def _later(self, outcome: Later, now: float) -> None:
        grown = min(self._settings.retry_max_seconds, self._settings.retry_min_seconds * 2 ** min(self._tries, 16))
        # Half to all of it, so that the agents of a fleet do not come back at one instant.
        wait = grown * (0.5 + self._jitter() / 2)
        if outcome.after_seconds is not None:
            wait = min(self._settings.retry_max_seconds, max(outcome.after_seconds, self._settings.retry_min_seconds))
        with self._lock:
            self._tries += 1
            self._try_at = now + wait
            self._retries[outcome.reason] += 1
            was, self._trouble = self._trouble, f"{outcome.reason}: {outcome.said}"
        if not was:
            self._say(outcome.reason, "the otlp endpoint does not take metrics; they wait", outcome.said, 0, now)

    def _say(self, kind: str, message: str, said: str, points: int, now: float) -> None:
        if now - self._said_at.get(kind, float("-inf")) < _SAY_SECONDS:
            return
        self._said_at[kind] = now
        log.warning(message, extra={"endpoint": self._settings.endpoint, "reason": kind, "said": said, "points": points})
