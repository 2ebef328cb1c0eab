"""Publishes a load no faster than the line takes it in, and waits until all of it has come out at the end.

The embedded bus keeps 5 MiB of a partition and then drops the oldest, so the producer waits while any role lags by more than a window.
A role's lag is what it was sent (by us, or by the role before it) less what it says it has done; the roles are asked a few times a second.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, Message, Producer

from bench.load import Load, Sent
from bench.stack import Done, Stack
from schemas import topics
from schemas.codec import HEADERS
from xpulse.bus.sending import producer_config

if TYPE_CHECKING:
    from xpulse.bus.settings import Bus

WINDOW: Final = 6000
"""Records a role may lag behind: at most 3 MiB of a partition where four hold the fleet's nodes."""

WARM_TICKS: Final = 11
"""Every first sample is full, makes its series and its identity known; the first usage is stored within ten seconds."""

LINGER_MS: Final = 10
_ASK_SECONDS: Final = 0.2
_DRAIN_ASK_SECONDS: Final = 0.05
_STUCK_SECONDS: Final = 60.0

WRITERS: Final = {topics.USAGE: "attribute", topics.FINDINGS: "detect"}
"""Topics that the line itself writes. How many of its outputs are alerts the alert role does not say: a role that reads them may seem to
be ahead by so many, which is why the store is counted at the end."""

OnProgress = Callable[[int, float], None]
"""Called with the device samples that every role has done, and the seconds since the first was published."""


class Stuck(Exception):
    """Nothing moved for a minute."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What went through: `batches` of samples, of them `timed` ones in `seconds` until the last one was through every role."""

    batches: int
    timed: int
    seconds: float
    done: dict[str, Done]
    cpu_seconds: dict[str, float]


class Feeder:
    """A producer for ready messages; librdkafka's own settings are those of every producer of ours, but for the linger."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._failed: list[str] = []
        config = producer_config(bus, linger_ms=LINGER_MS) | {"delivery.report.only.error": True}
        self._producer = Producer(config)

    def send(self, messages: Iterable[Sent]) -> None:
        """Hand messages over, waiting while the queue is full."""
        produce = self._producer.produce
        headers: list[tuple[str, str | bytes | None]] = list(HEADERS)
        for topic, key, value in messages:
            while True:
                try:
                    produce(self._bus.wire(topic), value, key, on_delivery=self._note, headers=headers)
                    break
                except BufferError:
                    self._producer.poll(0.05)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until all is acknowledged. Raises Stuck where it is not."""
        if (left := self._producer.flush(_STUCK_SECONDS)) or self._failed:
            raise Stuck(f"{left} messages were not acknowledged; failed: {', '.join(sorted(set(self._failed))) or 'none'}")

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error.str())


def run(
    load: Load, stack: Stack, feeder: Feeder, readers: dict[str, tuple[str, ...]], *, seconds: float, on_progress: OnProgress
) -> Passage:
    """Publish tick after tick until `seconds` have passed or the load is at its end, then wait for the rest.

    `readers` gives each role the topics it reads. The clock starts after the first ticks, when every series is known to every role.
    """
    sent: Counter[str] = Counter()
    follow = _Follow(stack, readers, sent, load.shape.devices, on_progress)

    def publish(number: int) -> None:
        messages = list(load.tick(number))
        follow.make_room(len(messages))
        feeder.send(messages)
        sent.update(message.topic for message in messages)

    warm = min(WARM_TICKS, load.shape.ticks // 2)
    for number in range(warm):
        publish(number)
    feeder.flush()
    follow.drain(attributed=False)
    before = sent[topics.SAMPLES]
    cpu_before, own_before = stack.cpu_seconds(), time.process_time()
    follow.start()
    ticks = warm
    while ticks < load.shape.ticks and follow.seconds < seconds:
        publish(ticks)
        ticks += 1
    closing = list(load.closing(ticks - 1))
    feeder.send(closing)
    feeder.flush()
    sent.update(message.topic for message in closing)
    took = follow.drain(attributed=True)
    cpu = {name: after - cpu_before[name] for name, after in stack.cpu_seconds().items()}
    cpu["producer"] = time.process_time() - own_before
    return Passage(sent[topics.SAMPLES], sent[topics.SAMPLES] - before, took, follow.last, cpu)


class _Follow:
    def __init__(
        self, stack: Stack, readers: dict[str, tuple[str, ...]], sent: Counter[str], devices: int, on_progress: OnProgress
    ) -> None:
        self._stack = stack
        self._readers = readers
        self._sent = sent
        self._devices = devices
        self._on_progress = on_progress
        self._began = self._moved = time.monotonic()
        self._room = WINDOW
        self._before = 0
        self.last: dict[str, Done] = {}

    def start(self) -> None:
        """Time and samples count from now on."""
        self._began, self._before = time.monotonic(), self._sent[topics.SAMPLES]

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def make_room(self, records: int) -> None:
        """Wait until so many more may be on their way."""
        while records > self._room:
            self._ask()
            self._room = WINDOW - max(self._lags().values())
            if records > self._room:
                if records > WINDOW:
                    raise ValueError(f"{records} records a tick do not fit the window of {WINDOW}: fewer nodes")
                time.sleep(_ASK_SECONDS)
        self._room -= records

    def drain(self, *, attributed: bool) -> float:
        """Wait until every role has done what it was sent, and every sample is attributed if so asked; the seconds since the start."""
        while True:
            self._ask()
            took = self.seconds
            whole = not attributed or self.last["attribute"].published >= self._sent[topics.SAMPLES]
            if whole and max(self._lags().values()) <= 0:
                return took
            time.sleep(_DRAIN_ASK_SECONDS)

    def _ask(self) -> None:
        # a role is asked before those that feed it: what it has done can then never seem more than what it was sent
        now = {role: self._stack.done(role) for role in reversed(self._stack.roles)}
        if now != self.last:
            self._moved = time.monotonic()
        elif time.monotonic() - self._moved > _STUCK_SECONDS:
            raise Stuck(f"nothing moved for {_STUCK_SECONDS:.0f} s; lags: {self._lags()}")
        self.last = now
        batches = self._sent[topics.SAMPLES] - self._before
        self._on_progress(max(0, batches - max(0, *self._lags().values())) * self._devices, self.seconds)

    def _lags(self) -> dict[str, int]:
        lags = {role: self._expected(role) - self.last[role].processed for role in self._readers}
        # What detect tells itself (peer-stats) it reads beyond what it was sent, and no role after it reads it.
        own = max(0, -lags.get("detect", 0))
        return {role: lag if role == "detect" or lag > own else min(lag, 0) for role, lag in lags.items()}

    def _expected(self, role: str) -> int:
        return sum(self.last[WRITERS[t]].published if t in WRITERS else self._sent[t] for t in self._readers[role])
