"""A role's side of its consumer group: records in, positions and commits kept, assignments taken and given up, losses reported."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition, murmur2

from schemas.flow import Partition, Processor, Record, TakesMany
from schemas.status import LostRange, RunnerStatus
from schemas.topics import topic
from xpulse.bus.heads import INTERVAL_MS, note_heads
from xpulse.bus.places import Place, find_places
from xpulse.bus.reader import BusReader, passing
from xpulse.bus.records import to_record
from xpulse.bus.settings import librdkafka_config
from xpulse.errors import ProblemFound

if TYPE_CHECKING:
    from confluent_kafka import Message

    from xpulse.bus.settings import Bus

log = logging.getLogger(__name__)

BATCH: Final = 500
PACE_SECONDS: Final = 0.03
"""Between two takes while less than a batch is ready: a role that is ahead would take records one by one, and on a busy machine that costs
those that are behind. Detect's cost a sample is ten times as high for single records as for batches of a hundred and more, between
which and full ones there is no difference (measured); that 30 ms is the right pace is not shown: 30, 60 and 100 ms were alike."""

_LEAVE_SECONDS: Final = 1.0
_MOST_KEYS: Final = 100_000
_NODE_KEYS: Final = frozenset({"cluster/node", "cluster/node[/uid]"})


def consumer_config(bus: Bus, role: str) -> dict[str, Any]:
    """librdkafka's configuration of a role's consumer. `range` gives the same partition numbers of all inputs to one member."""
    session_ms = round(bus.session_seconds() * 1000)
    found = librdkafka_config(bus) | {
        "group.id": bus.group(role),
        "client.id": f"xpulse-{role}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # where to begin is decided in places.py: never a silent jump
        "partition.assignment.strategy": "range",
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": max(300, session_ms // 4),
        "max.poll.interval.ms": 900_000,
        "enable.partition.eof": True,
        "queued.max.messages.kbytes": 8192,
        "fetch.max.bytes": 8 * 1024 * 1024,
        "fetch.wait.max.ms": 250,
        "fetch.queue.backoff.ms": 20,  # librdkafka's second would starve a loop that empties the queue in 50 ms
        "topic.metadata.refresh.interval.ms": 30_000,
        "statistics.interval.ms": INTERVAL_MS,
    }
    if not bus.embedded:  # the embedded bus ignores static membership (streams.md §9)
        found["group.instance.id"] = f"{role}-{bus.instance_ordinal}"
    return found


@dataclass(slots=True)
class Batch:
    """Records to process: those below the commit (they only rebuild state) apart. `upto` says what is done when the batch is."""

    rebuilt: list[Record] = field(default_factory=list)
    live: list[Record] = field(default_factory=list)
    upto: dict[tuple[str, int], int] = field(default_factory=dict)

    def extend(self, more: Batch) -> None:
        self.rebuilt += more.rebuilt
        self.live += more.live
        self.upto |= more.upto


class Intake:
    """Subscribes to a processor's inputs. `beat` is called at each step of a long assignment; `on_change` when partitions come or go."""

    def __init__(
        self,
        processor: Processor,
        bus: Bus,
        *,
        status: RunnerStatus,
        stop: threading.Event,
        clock: Callable[[], int],
        beat: Callable[[], None],
        on_change: Callable[[], None],
    ) -> None:
        self.places: dict[tuple[str, int], Place] = {}
        self.failure: BaseException | None = None
        self._processor = processor
        self._bus = bus
        self._status = status
        self._stop = stop
        self._clock = clock
        self._beat = beat
        self._on_change = on_change
        self._names = {bus.wire(name): name for name in processor.inputs}
        self._most_records = processor.most_records if isinstance(processor, TakesMany) else BATCH
        self._next_take = 0.0
        self._open_commits = 0
        self._away = False
        callbacks = {"stats_cb": self._on_statistics, "on_commit": self._on_commit, "error_cb": self._on_error}
        self._consumer = Consumer(consumer_config(bus, processor.role) | callbacks, logger=logging.getLogger("xpulse.bus.librdkafka"))
        self._consumer.subscribe(list(self._names), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def take(self, timeout_seconds: float) -> Batch:
        """What is ready, after at most so long for the first record. A full batch is not waited for, but a few records are not taken
        again and again either.

        Raises what went wrong in a callback, ProblemFound where the broker refuses us for good.
        """
        self._stop.wait(max(0.0, self._next_take - time.monotonic()))
        messages = self._consumer.consume(1, timeout_seconds)
        if messages:
            messages += self._consumer.consume(self._most_records - 1, 0)
        if messages and len(messages) < BATCH:
            self._next_take = time.monotonic() + PACE_SECONDS
        batch = self._sort(messages)
        if self.failure is not None:
            raise self.failure
        return batch

    def done(self, batch: Batch) -> None:
        """The batch's records are processed and what they produced is acknowledged."""
        for key, offset in batch.upto.items():
            if (place := self.places.get(key)) is not None:
                place.done = offset

    def pause(self) -> None:
        self._consumer.pause([place.position() for place in self.places.values()])

    def resume(self) -> None:
        self._consumer.resume([place.position() for place in self.places.values()])

    def commit(self, *, wait: bool = False) -> bool:
        """Commit what is done; whether there was anything."""
        dirty = [place for place in self.places.values() if place.dirty]
        if not dirty:
            return False
        offsets = [place.to_commit() for place in dirty]
        try:
            if wait:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            else:
                self._consumer.commit(offsets=offsets, asynchronous=True)
                self._open_commits += 1
        except KafkaException as error:
            log.info("commit failed; the records come again", extra={"why": str(error.args[0])})
            return False
        for place in dirty:
            place.committed = place.done
        return True

    def begin_again(self) -> None:
        """As if the partitions had just been assigned, to a processor that knows nothing: what is not done comes once more."""
        self.commit(wait=True)
        owned = [place.position() for place in self.places.values()]
        with BusReader(self._bus, stop=self._stop, on_step=self._beat) as reader:
            self._processor.restore(reader, frozenset())
        self.places = {}
        self._on_assign(self._consumer, owned)

    def close(self) -> None:
        """Commit and leave. A broker that is away is not waited for: it forgets us when our session is over."""
        self.commit()
        deadline = time.monotonic() + _LEAVE_SECONDS
        while self._open_commits and not self._away and time.monotonic() < deadline:
            self._consumer.poll(0.02)
        self.places = {}
        if not self._open_commits and not self._away:
            self._consumer.close()

    def _sort(self, messages: Sequence[Message]) -> Batch:
        batch = Batch()
        here: tuple[str | None, int | None] | None = None
        place: Place | None = None
        touched: list[Place] = []
        for message in messages:
            if message.error() is not None:
                self._on_event(message, touched)
                continue
            there = (message.topic(), message.partition())
            if there != here:
                here, place = there, self.places.get(there)  # type: ignore[arg-type]  # a message without error has both
                if place is not None:
                    touched.append(place)
            if place is None:
                continue  # of an assignment that is gone
            record = to_record(message, place.at.topic)
            if record.offset < place.next:
                continue  # read before
            place.next = record.offset + 1
            if place.watermark_ns is None or record.timestamp_ns > place.watermark_ns:
                place.watermark_ns = record.timestamp_ns
            if record.key is not None and record.key not in place.keys:
                self._check_partitioner(place, record.key)
            if record.offset >= place.rebuild_until:
                batch.live.append(record)
            elif record.timestamp_ns >= place.skip_before_ns:
                batch.rebuilt.append(record)
        batch.upto = {(place.wire, place.at.partition): place.next for place in touched}
        return batch

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        owned = sorted(Partition(self._names[p.topic], p.partition) for p in partitions)
        try:
            with BusReader(self._bus, stop=self._stop, on_step=self._beat) as reader:
                rewind, now_ns = self._processor.rewind_seconds, self._clock()
                places, lost = find_places(consumer, self._bus, reader, owned, rewind_seconds=rewind, now_ns=now_ns)
                counts = {name: reader.partitions(name) for name in {p.topic for p in owned}}
                self._processor.restore(reader, frozenset(owned))
        except BaseException as error:  # librdkafka would go on without it; `take` raises it
            self.failure = error
            consumer.assign([])
            return
        for place in places:
            place.partitions = counts[place.at.topic] if topic(place.at.topic).key in _NODE_KEYS else None
        for each in lost:
            self._note_lost(each)
        self.places = {(place.wire, place.at.partition): place for place in places}
        self._on_change()
        consumer.assign([place.position() for place in places])
        log.info("assigned", extra={"partitions": len(places), "to_rebuild": sum(p.rebuild_until - p.next for p in places)})

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.commit(wait=True)
        self._on_lost(consumer, partitions)

    def _on_lost(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.places = {}
        self._on_change()

    def _on_event(self, message: Message, touched: list[Place]) -> None:
        error, place = message.error(), self.places.get((message.topic() or "", message.partition() or 0))
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            if place is not None and (message.offset() or 0) > place.next:
                place.next = message.offset() or 0  # compaction left a gap at the end
        elif error.code() == KafkaError._AUTO_OFFSET_RESET and place is not None:
            self._jump(place)
            touched.append(place)
        else:
            self._on_error(error)

    def _jump(self, place: Place) -> None:
        """The next record is gone from the broker: say which ones are lost and go on with the first there is."""
        with BusReader(self._bus, stop=self._stop, on_step=self._beat) as reader:
            low, high = reader.bounds(place.at.topic, place.at.partition)
        if place.next < low:
            self._note_lost(LostRange(place.at.topic, place.at.partition, place.next, low - 1))
        elif place.next > high:
            self._note_lost(LostRange(place.at.topic, place.at.partition, high, place.next - 1))
        place.next = low
        place.rebuild_until = min(place.rebuild_until, low)
        self._consumer.assign([each.position() for each in self.places.values()])

    def _note_lost(self, lost: LostRange) -> None:
        self._status.lost_ranges.append(lost)
        log.error("records lost: the broker no longer has them", extra=lost._asdict())

    def _check_partitioner(self, place: Place, key: bytes) -> None:
        if len(place.keys) >= _MOST_KEYS:
            place.keys.clear()
        place.keys.add(key)
        if place.partitions and murmur2(key, place.partitions) != place.at.partition:
            if self._status.foreign_keys_total == 0:
                where = {"topic": place.wire, "partition": place.at.partition, "key": repr(key)}
                log.warning("a producer does not partition by murmur2; set partitioner=murmur2_random there", extra=where)
            self._status.foreign_keys_total += 1

    def _on_statistics(self, statistics: str) -> None:
        note_heads(statistics, self.places.values(), self._clock())
        if any(place.high is not None for place in self.places.values()):
            self._away = False

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self._open_commits = max(0, self._open_commits - 1)
        for each in partitions:
            place = self.places.get((each.topic, each.partition))
            if place is not None and (error is not None or each.error is not None):
                place.committed = None  # dirty again

    def _on_error(self, error: KafkaError) -> None:
        # A consumer says its fatal errors by code (seen with 2.16.1: a static member fenced after a broker's restart).
        if error.fatal() or error.code() == KafkaError._FATAL:
            member = f"{self._processor.role}-{self._bus.instance_ordinal}"
            remedy = f"; if another process runs as {member}, give each its own bus.instance_ordinal"
            self.failure = ProblemFound(f"{self._processor.role}: the broker refuses this consumer: {error.str()}{remedy}")
        elif error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            self._trouble(f"{error.str()}; make the topics with: xpulse topics create")
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._away = True
            self._trouble(error.str())
        elif not passing(error):
            self._trouble(error.str())

    def _trouble(self, why: str) -> None:
        if self._status.trouble != why:
            log.warning("consuming is in trouble", extra={"why": why})
        self._status.trouble = why
