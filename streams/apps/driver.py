"""Feeds a processor one record at a time: retries in place, publishes what comes out, and only then lets the record be acknowledged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from schemas.flow import Busy, DeadLetter, Emitted, Out, Partition, Processor, Record, Tick, defect_reason, tick_time
from schemas.identity import partition_of
from schemas.status import CountsDrops, LostRange, RunnerStatus
from schemas.topics import topic
from schemas.wake import Wake
from streams.apps.places import Place, PlaceReader, find_places

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.getLogger(__name__)

AsyncPublish = Callable[[Sequence[Emitted]], Awaitable[None]]
"""Returns when the broker has acknowledged all, dead letters included; raises nothing but a cancellation."""

CheckRejects = Callable[[str, int, int, str], None]
"""Called with role, records, rejected ones and the last reason; raises where the role should stop instead of rejecting on."""

_LEAST_RETRY_SECONDS: Final = 0.05
_LOW_NS: Final = 1_000_000_000
"""How long the broker's word on the lowest offset of a partition counts: a transactional producer leaves a gap every few records."""

_MOST_KEYS: Final = 100_000
_NODE_KEYS: Final = frozenset({"cluster/node", "cluster/node[/uid]"})


class Driver:
    """The runner's side of a processor. All its work is done under one lock, so that records, ticks and restores never overlap.

    `failure` is what ended it; `on_progress` is called whenever something moved, a retry included.
    """

    def __init__(
        self,
        processor: Processor,
        *,
        publish: AsyncPublish,
        open_reader: Callable[[], AbstractContextManager[PlaceReader]],
        status: RunnerStatus,
        clock: Callable[[], int],
        on_progress: Callable[[], None],
        check_rejects: CheckRejects,
    ) -> None:
        self.places: dict[Partition, Place] = {}
        self.generation = -1
        self.failure: BaseException | None = None
        self.failed = asyncio.Event()
        self._processor = processor
        self._publish = publish
        self._open_reader = open_reader
        self._status = status
        self._clock = clock
        self._progress = on_progress
        self._check_rejects = check_rejects
        self._lock = asyncio.Lock()
        self._last_tick_ns = 0
        self._wake = Wake()
        self._in_hand = False
        self._partitions: dict[str, int] = {}
        self._keys: set[tuple[str, int, bytes]] = set()
        self._lows: dict[Partition, tuple[int, int]] = {}

    def has_work(self) -> bool:
        """Whether a record waits or is in hand. Callable from any thread."""
        return self._in_hand or any(place.lag for place in list(self.places.values()))

    async def assign(self, committed: Mapping[Partition, int | None], generation: int) -> None:
        """Restore the processor for these partitions and decide where each begins. Never raises: a failure ends the role."""
        async with self._lock:
            self.places = {}
            try:
                places, lost = await asyncio.get_running_loop().run_in_executor(None, self._restore, committed)
            except Exception as error:
                self._fail(error)
                return
            self.places, self.generation = places, generation
            for each in lost:
                self._note_lost(each)
            self._report()
            to_rebuild = sum(place.rebuild_until - place.next for place in places.values())
            log.info("assigned", extra={"partitions": len(places), "to_rebuild": to_rebuild})

    async def release(self) -> None:
        """The partitions are gone."""
        self.places = {}
        self._report()

    async def take(self, record: Record, generation: int) -> bool:
        """Take a record in. True once all it gave is published; False where it belongs to a former assignment and comes again."""
        async with self._lock:
            partition = Partition(record.topic, record.partition)
            place = self.places.get(partition)
            if place is None or generation != self.generation or record.offset < place.next:
                return False
            if self.failure is not None:
                await asyncio.Event().wait()  # never acknowledged: the role is ending
            self._in_hand = True
            try:
                await self._work(record, place)
            finally:
                self._in_hand = False
            return True

    async def tick(self, ends: Mapping[Partition, tuple[int, int]]) -> None:
        """Time passes. `ends` gives partitions their end offset and when (wall clock, ns) the broker said so."""
        async with self._lock:
            for partition, (high, told_ns) in ends.items():
                if (place := self.places.get(partition)) is not None and told_ns > place.high_at_ns:
                    place.high, place.high_at_ns = high, told_ns
            self._report()
            if not self._wake.awake(self._clock()):
                return
            at_ns = self._event_time()
            if at_ns is None or at_ns <= self._last_tick_ns or self.failure is not None:
                return
            try:
                emitted = self._processor.tick(Tick(at_ns))
            except Busy as busy:
                self._status.trouble = busy.reason
                return
            except Exception as error:
                self._fail(error)
                return
            self._last_tick_ns = at_ns
            self._status.trouble = ""
            if not (self._processor.silent_rebuild and any(place.rebuilding for place in self.places.values())):
                await self._send(emitted)

    def note_retry(self, reason: str) -> None:
        """The publisher waits for the broker."""
        self._status.retries_total += 1
        self._status.trouble = f"publishing: {reason}"
        self._progress()

    def _restore(self, committed: Mapping[Partition, int | None]) -> tuple[dict[Partition, Place], list[LostRange]]:
        rewind_ns = round(self._processor.rewind_seconds * 1e9)
        with self._open_reader() as reader:
            self._partitions = {name: reader.partitions(name) for name in {p.topic for p in committed} if topic(name).key in _NODE_KEYS}
            places, lost = find_places(reader, committed, rewind_ns=rewind_ns, now_ns=self._clock())
            self._processor.restore(reader, frozenset(committed))
        return places, lost

    async def _work(self, record: Record, place: Place) -> None:
        if record.offset > place.next and not topic(record.topic).compacted:
            await self._look_into_gap(record, place)
        if record.key is not None and (record.topic, record.partition, record.key) not in self._keys:
            self._check_partitioner(record, record.key)
        rebuilt = record.offset < place.rebuild_until
        emitted = await self._process(record)
        if rebuilt:
            self._status.rebuilt_total += 1
            if not self._processor.silent_rebuild:
                # what is a dead letter now was one before the restart, and is in xpulse.dlq already
                await self._send([one for one in emitted if not isinstance(one, DeadLetter)])
        else:
            await self._check(emitted)
            await self._send(emitted)
            self._status.processed_total += 1
            self._status.last_success_ns = self._clock()
        place.next = record.offset + 1
        place.watermark_ns = max(record.timestamp_ns, place.watermark_ns or 0)
        self._progress()

    async def _process(self, record: Record) -> Sequence[Emitted]:
        while True:
            try:
                emitted = self._processor.process([record])
                self._status.trouble = ""
                return emitted
            except Busy as busy:
                self._status.retries_total += 1
                self._status.trouble = busy.reason
                self._progress()
                await asyncio.sleep(max(busy.retry_after_seconds, _LEAST_RETRY_SECONDS))
            except (OSError, MemoryError) as error:  # the machine is at fault, not the record
                self._fail(error)
                await asyncio.Event().wait()  # never acknowledged: the role is ending
            except Exception as error:  # Faust acknowledges what raises: a defect of ours must not lose the record in silence
                self._status.defects_total += 1
                where = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
                first = self._status.defects_total == 1  # one traceback is enough to mend it
                log.error("a record made the processor fail: it is a dead letter", extra=where, exc_info=error if first else None)
                return [DeadLetter(record, defect_reason(error))]

    async def _check(self, emitted: Iterable[Emitted]) -> None:
        dead = [one.reason for one in emitted if isinstance(one, DeadLetter)]
        try:
            self._check_rejects(self._processor.role, 1, len(dead), dead[-1] if dead else "")
        except Exception as error:
            self._fail(error)
            await asyncio.Event().wait()  # not published and never acknowledged

    async def _send(self, emitted: Sequence[Emitted]) -> None:
        if not emitted:
            return
        await self._publish(emitted)
        self._status.trouble = ""  # whatever the publisher waited for is over
        self._status.published_total += sum(1 for one in emitted if isinstance(one, Out))
        self._status.dead_letters_total += sum(1 for one in emitted if isinstance(one, DeadLetter))

    def _event_time(self) -> int | None:
        watermarks = {partition: place.watermark_ns for partition, place in self.places.items() if place.watermark_ns is not None}
        lags = {partition: place.lag for partition, place in self.places.items()}
        # Where nothing is left to read, time has passed up to when the broker said so, not up to now.
        told_ns = min((place.high_at_ns for place in self.places.values()), default=0)
        return tick_time(self.places, watermarks, lags, told_ns)

    def _report(self) -> None:
        status = self._status
        status.assigned = {partition: place.lag for partition, place in self.places.items()}
        status.ready = status.ready or (bool(self.places) and not any(place.rebuilding for place in self.places.values()))
        if isinstance(self._processor, CountsDrops):
            status.dropped_total = self._processor.dropped.copy()

    async def _look_into_gap(self, record: Record, place: Place) -> None:
        """Offsets without a record: lost where the broker no longer has them, else marks of transactions, which nobody ever sees."""
        partition, now_ns = Partition(record.topic, record.partition), self._clock()
        low, asked_ns = self._lows.get(partition, (0, 0))
        if low <= place.next and abs(now_ns - asked_ns) >= _LOW_NS:
            try:
                low = await asyncio.get_running_loop().run_in_executor(None, self._lowest, partition)
            except Exception:
                log.exception("the broker does not say which records it has", extra=partition._asdict())
                low = record.offset  # not known: rather too much is called lost than nothing
            else:
                self._lows[partition] = low, now_ns
        if place.next < low:
            self._note_lost(LostRange(*partition, place.next, min(low, record.offset) - 1))

    def _lowest(self, partition: Partition) -> int:
        with self._open_reader() as reader:
            return reader.bounds(*partition)[0]

    def _note_lost(self, lost: LostRange) -> None:
        self._status.lost_ranges.append(lost)
        log.error("records lost: the broker no longer has them", extra=lost._asdict())

    def _check_partitioner(self, record: Record, key: bytes) -> None:
        """A producer that partitions unlike ours makes joins and per-node state wrong without a word."""
        if len(self._keys) >= _MOST_KEYS:
            self._keys.clear()
        self._keys.add((record.topic, record.partition, key))
        count = self._partitions.get(record.topic)
        if count and partition_of(key, count) != record.partition:
            if self._status.foreign_keys_total == 0:
                where = {"topic": record.topic, "partition": record.partition, "key": repr(key)}
                log.warning("a producer does not partition by murmur2; set partitioner=murmur2_random there", extra=where)
            self._status.foreign_keys_total += 1

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
        self.failed.set()
