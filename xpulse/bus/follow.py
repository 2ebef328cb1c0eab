"""Follows topics beside the roles: outside any group, from where they end now, for as long as it is polled."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition

from schemas.flow import Record
from xpulse.bus.records import to_record
from xpulse.bus.settings import Bus, librdkafka_config

_ANSWER_SECONDS = 10.0


class Follower:
    """Everything that is appended to `topics` (unprefixed) after this was made. Raises ConnectionError where no broker answers in 10 s."""

    def __init__(self, bus: Bus, topics: Sequence[str]) -> None:
        self._names = {bus.wire(name): name for name in topics}
        self._consumer = Consumer(
            librdkafka_config(bus)
            | {
                "group.id": bus.group("watch"),  # needed by the client; never joined and never committed
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "queued.max.messages.kbytes": 16 * 1024,
                "fetch.wait.max.ms": 200,
            },
            logger=logging.getLogger("xpulse.bus.watch"),
        )
        try:
            known = self._consumer.list_topics(timeout=_ANSWER_SECONDS).topics
            places = []
            for name in topics:
                row = known.get(bus.wire(name))
                if row is None or row.error is not None:
                    raise ConnectionError(f"topic {bus.wire(name)} does not exist on {bus.brokers}; make it with: xpulse topics create")
                for partition in row.partitions:
                    end = self._consumer.get_watermark_offsets(TopicPartition(bus.wire(name), partition), timeout=_ANSWER_SECONDS)[1]
                    places.append(TopicPartition(bus.wire(name), partition, end))
        except KafkaException as error:
            self._consumer.close()
            raise ConnectionError(f"{bus.brokers} does not answer: {error}; check bus.brokers") from None
        self._consumer.assign(places)

    def poll(self, seconds: float) -> list[Record]:
        """What has come, at most 500 records; empty after `seconds` without any. Errors of the connection are waited out."""
        messages = self._consumer.consume(500, seconds)
        return [to_record(message, self._names[message.topic() or ""]) for message in messages if message.error() is None]

    def close(self) -> None:
        self._consumer.close()
