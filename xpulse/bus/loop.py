"""The consume → process → publish → commit loop of the direct runner, the sinks and the forecaster.

A record's offset is committed only after what it produced is acknowledged; a crash in between repeats records, never skips one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from schemas.flow import Busy, DeadLetter, Emitted, Out, Processor, Record, Tick, defect_reason, tick_time
from schemas.status import CountsDrops, RunnerStatus
from schemas.wake import Wake
from xpulse.bus.careful import NO_DEFECT, Careful
from xpulse.bus.intake import Batch, Intake
from xpulse.bus.producer import Publisher, Stopped
from xpulse.bus.rejects import RejectWindow
from xpulse.bus.watchdog import Watchdog, reachable

if TYPE_CHECKING:
    from xpulse.bus.settings import Bus

log = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 0.1
_COMMIT_SECONDS: Final = 0.5
_TICK_SECONDS: Final = 1.0

Publish = Callable[[Sequence[Emitted]], None]
"""Returns when all is acknowledged; raises Stopped only."""


def run(
    processor: Processor,
    bus: Bus,
    *,
    status: RunnerStatus,
    stop: threading.Event,
    publish: Publish | None = None,
    clock: Callable[[], int] = time.time_ns,
    on_stuck: Callable[[], None] | None = None,
) -> None:
    """Drive a processor until `stop` is set. `publish` None makes a Publisher of its own.

    Raises TooManyRejected, and ProblemFound where the broker refuses us for good. A loop that is stuck for a minute ends the
    process with exit code 70 (`on_stuck` for tests).
    """
    loop = _Loop(processor, bus, status=status, stop=stop, clock=clock, on_stuck=on_stuck)
    if publish is not None:
        loop.run(publish)
        return
    publisher = Publisher(bus, bus.group(processor.role), stop=stop, on_retry=loop.note_retry)
    try:
        loop.run(publisher.publish)
    finally:
        publisher.close()


class _Defect(Exception):
    """The processor failed on a batch: what it knows by now cannot be relied on."""


class _Loop:
    def __init__(
        self,
        processor: Processor,
        bus: Bus,
        *,
        status: RunnerStatus,
        stop: threading.Event,
        clock: Callable[[], int],
        on_stuck: Callable[[], None] | None,
    ) -> None:
        self._processor = processor
        self._status = status
        self._stop = stop
        self._clock = clock
        self._watchdog = Watchdog(self._has_work, lambda: reachable(bus.brokers), on_stuck=on_stuck)
        self._rejects = RejectWindow()
        self._careful = Careful()
        self._held: Batch | None = None
        self._held_until = self._next_commit = self._next_tick = 0.0
        self._in_hand = False
        self._last_tick_ns = 0
        self._wake = Wake()
        self._publish: Publish = lambda _: None
        self._intake = Intake(processor, bus, status=status, stop=stop, clock=clock, beat=self._watchdog.beat, on_change=self._on_change)

    def run(self, publish: Publish) -> None:
        self._publish = publish
        with self._watchdog:
            try:
                while not self._stop.is_set():
                    self._turn()
            except Stopped:
                pass  # what was not acknowledged is not committed and comes again
            finally:
                self._intake.close()

    def note_retry(self, reason: str) -> None:
        """The publisher waits for the broker."""
        self._status.retries_total += 1
        self._status.trouble = f"publishing: {reason}"
        self._watchdog.beat()

    def _turn(self) -> None:
        if self._held is not None:
            self._wait_held(self._held)
            return
        batch = self._intake.take(_IDLE_SECONDS)
        self._work(batch)
        now = time.monotonic()
        if self._held is None and now >= self._next_tick:
            self._next_tick = now + _TICK_SECONDS
            self._tick()
        if (not batch.upto or now >= self._next_commit) and self._intake.commit():
            self._next_commit = now + _COMMIT_SECONDS

    def _wait_held(self, held: Batch) -> None:
        """Keep polling (the group must see us alive); the same batch again when its time has come."""
        more = self._intake.take(max(0.0, min(0.2, self._held_until - time.monotonic())))
        if self._held is not held:  # the partitions changed meanwhile: what came is of the new ones
            self._work(more)
            return
        held.extend(more)
        if time.monotonic() >= self._held_until:
            self._work(held)

    def _work(self, batch: Batch) -> None:
        """Process and publish. On Busy hold the batch and pause the partitions."""
        self._in_hand = bool(batch.rebuilt or batch.live)
        try:
            self._rebuild(batch)
            self._process(batch)
        except Busy as busy:
            if self._held is None:
                self._intake.pause()
            self._held = batch
            self._held_until = time.monotonic() + busy.retry_after_seconds
            self._status.retries_total += 1
            self._status.trouble = busy.reason
            self._watchdog.beat()
            return
        except _Defect:
            self._begin_again(batch)
            return
        finally:
            self._in_hand = False
        self._intake.done(batch)
        if self._held is not None:
            self._held = None
            self._intake.resume()

    def _rebuild(self, batch: Batch) -> None:
        while batch.rebuilt:
            records = batch.rebuilt[:1] if self._careful else batch.rebuilt
            emitted = self._take_in(records, batch)
            self._status.rebuilt_total += len(records)
            batch.rebuilt = batch.rebuilt[len(records) :]
            self._watchdog.beat()
            if not self._processor.silent_rebuild:
                # what is a dead letter now was one before the restart, and is in xpulse.dlq already
                self._send([item for item in emitted if not isinstance(item, DeadLetter)])

    def _process(self, batch: Batch) -> None:
        count = len(batch.live)
        while batch.live:
            records = batch.live[:1] if self._careful else batch.live
            emitted = self._take_in(records, batch)
            dead = [item.reason for item in emitted if isinstance(item, DeadLetter)]
            self._rejects.note(self._processor.role, len(records), len(dead), dead[-1] if dead else "")
            self._send(emitted)
            self._status.processed_total += len(records)
            self._status.last_success_ns = self._clock()
            self._status.trouble = ""
            batch.live = batch.live[len(records) :]
            self._watchdog.beat()
        self._careful.passed(batch.upto, count, self._intake.places)

    def _take_in(self, records: Sequence[Record], batch: Batch) -> Sequence[Emitted]:
        """Never fails on a single record for a second time: such a one is a dead letter. Raises Busy and _Defect."""
        try:
            return self._processor.process(records)
        except NO_DEFECT:
            raise
        except Exception as error:
            if not self._careful:
                once = error if self._status.defects_total == 0 else None  # one traceback is enough to mend it
                log.error("the processor failed on a batch: its state is built anew", extra={"records": len(records)}, exc_info=once)
                raise _Defect from error
            record, reason = records[0], defect_reason(error)
            where = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
            log.error("a record made the processor fail: it is a dead letter", extra=where | {"why": reason})
            self._status.defects_total += 1
            self._careful.failed(batch.upto)
            return [DeadLetter(record, reason)]

    def _begin_again(self, batch: Batch) -> None:
        """As on a new assignment: nothing of the batch was published or committed, so all of it comes once more, record by record."""
        self._careful.failed(batch.upto)
        if self._held is not None:
            self._held = None
            self._intake.resume()
        self._intake.begin_again()

    def _send(self, emitted: Sequence[Emitted]) -> None:
        if not emitted:
            return
        self._publish(emitted)
        self._status.published_total += sum(1 for item in emitted if type(item) is Out)
        self._status.dead_letters_total += sum(1 for item in emitted if type(item) is DeadLetter)

    def _tick(self) -> None:
        places = list(self._intake.places.values())
        rebuilding = any(place.rebuilding for place in places)
        self._report()
        if not self._wake.awake(self._clock()):
            return
        watermarks = {place.at: place.watermark_ns for place in places if place.watermark_ns is not None}
        lags = {place.at: place.lag for place in places if place.lag is not None}
        # Where nothing is left to read, time has passed up to when the broker said so, not up to now.
        told_ns = min((place.high_at_ns for place in places), default=0)
        at_ns = tick_time([place.at for place in places], watermarks, lags, told_ns)
        if at_ns is None or at_ns <= self._last_tick_ns:
            return
        try:
            emitted = self._processor.tick(Tick(at_ns))
        except Busy as busy:
            self._status.trouble = busy.reason
            return
        self._last_tick_ns = at_ns
        if not (rebuilding and self._processor.silent_rebuild):
            self._send(emitted)

    def _on_change(self) -> None:
        """Partitions came or went: a held batch belongs to the old ones, its records come again."""
        self._held = None
        places = self._intake.places.values()
        self._status.assigned = {place.at: place.lag for place in places}
        self._status.ready = not any(place.rebuilding for place in places)

    def _report(self) -> None:
        places = self._intake.places.values()
        self._status.assigned = {place.at: place.lag for place in places}
        self._status.ready = self._status.ready or (bool(places) and not any(place.rebuilding for place in places))
        if places and self._status.lag is not None:
            self._status.trouble = ""
        if isinstance(self._processor, CountsDrops):
            self._status.dropped_total = self._processor.dropped.copy()

    def _has_work(self) -> bool:
        return self._in_hand or any(place.lag for place in list(self._intake.places.values()))
