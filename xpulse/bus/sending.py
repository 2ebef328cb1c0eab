"""The producer under every publisher: idempotent, partitioned as Java does, never giving up by itself, replaced when beyond repair."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from schemas.topics import MAX_MESSAGE_BYTES
from xpulse.bus.settings import librdkafka_config

if TYPE_CHECKING:
    from confluent_kafka import Message

    from schemas.flow import Out
    from xpulse.bus.settings import Bus

log = logging.getLogger(__name__)

BACKOFF_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Pauses between attempts; the last one repeats."""

_NS_PER_MS: Final = 1_000_000


def producer_config(bus: Bus, *, linger_ms: int = 0) -> dict[str, Any]:
    """librdkafka's configuration of our producers. Without linger a batch that is already complete goes out at once."""
    return librdkafka_config(bus) | {
        "enable.idempotence": True,
        "acks": "all",
        # librdkafka's default disagrees with Faust and Java on three of four keys (streams.md §5).
        "partitioner": "murmur2_random",
        "compression.type": bus.compression,
        "linger.ms": linger_ms,
        "batch.size": 512 * 1024,
        "message.max.bytes": MAX_MESSAGE_BYTES,
        "message.timeout.ms": 0,  # for ever: time is no reason to lose a message
        "queue.buffering.max.kbytes": (bus.queue_bytes + MAX_MESSAGE_BYTES) // 1024,
        "queue.buffering.max.messages": 1_000_000,
        "topic.metadata.propagation.max.ms": 5000,
    }


class Attempt:
    """One sending of some messages: how many are not yet answered, and which failed and why. Reports may come from another thread."""

    __slots__ = ("_lock", "failed", "finished", "left", "outs", "sent")

    def __init__(self, outs: Sequence[Out], finished: Callable[[], None] | None = None) -> None:
        self.outs = outs
        self.sent = 0
        self.left = len(outs)
        self.failed: dict[int, KafkaError] = {}
        self.finished = finished
        self._lock = threading.Lock()

    def report(self, index: int, error: KafkaError | None, _message: Message | None = None) -> None:
        """The answer for message `index`."""
        with self._lock:
            if error is not None:
                self.failed[index] = error
            self.left -= 1
            last = self.left == 0
        if last and self.finished is not None:
            self.finished()

    def why(self) -> str:
        """The first failure in words."""
        return str(self.failed[min(self.failed)].str())


class Sender:
    """A producer with the wire names of topics. `fatal` says that it is beyond repair."""

    def __init__(self, bus: Bus, *, linger_ms: int = 0) -> None:
        self._bus = bus
        self._linger_ms = linger_ms
        self._names: dict[str, str] = {}
        self.fatal = False
        self.producer = self._make()

    def start(self, attempt: Attempt) -> bool:
        """Hand messages to librdkafka, in order; False where its queue is full before the last one (call again later)."""
        names, outs, produce = self._names, attempt.outs, self.producer.produce
        while attempt.sent < len(outs):
            index, out = attempt.sent, outs[attempt.sent]
            name = names.get(out.topic)
            if name is None:
                name = names[out.topic] = self._bus.wire(out.topic)
            timestamp_ms = 0 if out.timestamp_ns is None else out.timestamp_ns // _NS_PER_MS
            report = partial(attempt.report, index)
            try:
                produce(name, out.value, out.key, -1, report, report, timestamp_ms, list(out.headers))
            except BufferError:
                return False
            except KafkaException as error:
                attempt.report(index, error.args[0])
            attempt.sent += 1
        return True

    def poll(self, timeout_seconds: float) -> int:
        """Serve delivery reports; how many there were."""
        if self.fatal:
            self.give_up()
        return self.producer.poll(timeout_seconds)

    def give_up(self) -> None:
        """Have everything that was not delivered answered as failed."""
        with contextlib.suppress(KafkaException):
            self.producer.purge()

    def recreate(self, why: str) -> None:
        """Put a new producer in place of this one; what it still held is answered as failed first."""
        log.warning("producer made anew", extra={"why": why})
        self.give_up()
        with contextlib.suppress(KafkaException):
            self.producer.flush(1.0)
        self.fatal = False
        self.producer = self._make()

    def _make(self) -> Producer:
        config = producer_config(self._bus, linger_ms=self._linger_ms)
        return Producer(config | {"error_cb": self._on_error}, logger=logging.getLogger("xpulse.bus.librdkafka"))

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:
            self.fatal = True
