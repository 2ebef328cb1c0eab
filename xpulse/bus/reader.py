"""Reads partitions from start to end outside any group: what `restore` gets, and how tail and the dead letters are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from xpulse.bus.producer import Stopped
from xpulse.bus.records import to_record
from xpulse.bus.sending import BACKOFF_SECONDS
from xpulse.bus.settings import librdkafka_config
from xpulse.errors import ProblemFound

if TYPE_CHECKING:
    from schemas.flow import Partition, Record
    from xpulse.bus.settings import Bus

ASK_SECONDS: Final = 10.0
"""How long one question to the broker may take before it is asked again."""

_NS_PER_MS: Final = 1_000_000
_T = TypeVar("_T")


class MissingTopic(ProblemFound):
    """The topic is not on the broker."""


class BusReader:
    """A Reader over Kafka. It waits for a broker that is away, calling `on_step` (the watchdog), until `stop`: Stopped."""

    def __init__(self, bus: Bus, *, stop: threading.Event | None = None, on_step: Callable[[], None] = lambda: None) -> None:
        self._bus = bus
        self._stop = stop or threading.Event()
        self._on_step = on_step
        self._opened: Consumer | None = None

    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
        """Records up to the end as it is now. The embedded bus has no index by time: there the older ones are read and left out."""
        here = TopicPartition(self._bus.wire(topic), partition)
        low, high = self.bounds(topic, partition)
        start = low
        if since_ns is not None and not self._bus.embedded:
            at = TopicPartition(here.topic, partition, since_ns // _NS_PER_MS)
            found = self.ask(lambda: self._consumer.offsets_for_times([at], timeout=ASK_SECONDS))[0].offset
            start = found if found >= 0 else high
        for record in self._span(topic, here, start, high):
            if since_ns is None or record.timestamp_ns >= since_ns:
                yield record

    def read_from(self, topic: str, partition: int, offset: int) -> Iterator[Record]:
        """Records from an offset up to the end as it is now."""
        low, high = self.bounds(topic, partition)
        yield from self._span(topic, TopicPartition(self._bus.wire(topic), partition), max(low, offset), high)

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has. Raises MissingTopic."""
        wire = self._bus.wire(topic)
        found = self.ask(lambda: self._consumer.list_topics(wire, timeout=ASK_SECONDS)).topics[wire]
        if found.error is not None or not found.partitions:
            raise MissingTopic(f"topic {wire} is not on {self._bus.brokers}; make it with: xpulse topics create")
        return len(found.partitions)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The lowest offset there is, and the one that the next record will get."""
        here = TopicPartition(self._bus.wire(topic), partition)
        return self.ask(lambda: self._consumer.get_watermark_offsets(here, timeout=ASK_SECONDS))

    def timestamps(self, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
        """The broker's time (ns) of the first record at or after each offset; a partition without one is left out."""
        found: dict[Partition, int] = {}
        for partition, offset in offsets.items():
            _, high = self.bounds(partition.topic, partition.partition)
            here = TopicPartition(self._bus.wire(partition.topic), partition.partition)
            for record in self._span(partition.topic, here, offset, high):
                found[partition] = record.timestamp_ns
                break
        return found

    def ask(self, question: Callable[[], _T]) -> _T:
        """The answer, asked for again while the broker is away. Raises Stopped."""
        tries = 0
        while True:
            self._on_step()
            try:
                return question()
            except KafkaException as error:
                if not passing(error.args[0]):
                    raise
            if self._stop.wait(BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS) - 1)]):
                raise Stopped
            tries += 1

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> BusReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _consumer(self) -> Consumer:
        if self._opened is None:
            config = librdkafka_config(self._bus) | {
                "group.id": self._bus.group("reader"),  # librdkafka asks for one; nothing is ever committed or joined
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "queued.max.messages.kbytes": 4096,
                "fetch.wait.max.ms": 50,
            }
            self._opened = Consumer(config)
        return self._opened

    def _span(self, topic: str, here: TopicPartition, start: int, end: int) -> Iterator[Record]:
        """Records with start <= offset < end; gaps (compaction) are stepped over."""
        if start >= end:
            return
        consumer = self._consumer
        consumer.assign([TopicPartition(here.topic, here.partition, start)])
        try:
            while True:
                self._on_step()
                if self._stop.is_set():
                    raise Stopped
                for message in consumer.consume(1, 0.25) + consumer.consume(499, 0):
                    if (error := message.error()) is not None:
                        if error.code() == KafkaError._PARTITION_EOF:
                            return
                        if not passing(error):
                            raise KafkaException(error)
                        continue
                    if (message.offset() or 0) >= end:
                        return
                    yield to_record(message, topic)
                    if (message.offset() or 0) >= end - 1:
                        return
        finally:
            if self._opened is not None:
                self._opened.unassign()


def passing(error: KafkaError) -> bool:
    """Whether it may be well later without anyone changing a setting."""
    return error.retriable() or error.code() in {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError._WAIT_CACHE,
        KafkaError._IN_PROGRESS,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
