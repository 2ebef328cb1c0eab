"""The agent's publisher: takes messages without waiting, keeps on disk what no broker takes, and counts what was acknowledged.

While the bus answers, a message is in memory until it is acknowledged. Where nothing is acknowledged for a while, or memory is full,
what waits is written to the spool and everything new of those topics goes behind it. Whether the bus is back is asked with the oldest
messages themselves; then the spool is sent oldest first, and once it is empty the disk is left alone again. Order within a topic is
kept throughout.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from schemas.flow import Busy
from schemas.topics import MAX_VALUE_BYTES, SAMPLES
from xpulse.bus.filling import Filling
from xpulse.bus.line import Flight, Line, size_bytes
from xpulse.bus.replay import PROBE_RECORDS, Replay
from xpulse.bus.sending import Sender
from xpulse.bus.totals import AgentTotals
from xpulse.northbound.spool.folder import force

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from schemas.flow import Out
    from xpulse.bus.settings import Bus
    from xpulse.northbound.spool.folder import SpoolFolder

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
_NS_PER_SECOND: Final = 1_000_000_000


class _Sender(Sender):
    """`said` is the last that librdkafka had to say of the brokers."""

    said = ""

    def _on_error(self, error: KafkaError) -> None:
        self.said = error.str()
        super()._on_error(error)


class AgentPublisher:
    """Sends in the background. With a spool an outage of the bus loses nothing until that is full; without one, until memory is.

    `memory_bytes` bounds what is not acknowledged in memory (`bus.queue_bytes` unless given). The other arguments are the settings of
    northbound.spool. `spool` is closed with this.
    """

    def __init__(
        self,
        bus: Bus,
        spool: SpoolFolder | None = None,
        *,
        memory_bytes: int | None = None,
        patience_seconds: float = 5.0,
        fsync_seconds: float = 5.0,
        replay_bytes_per_second: int = 4 * 1024 * 1024,
        trouble: str = "",
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._limit_bytes = memory_bytes or bus.queue_bytes
        self._setting = "northbound.spool.memory_bytes" if memory_bytes else "bus.queue_bytes"
        self._spool, self._trouble = spool, trouble
        self._patience_seconds, self._fsync_seconds = patience_seconds, fsync_seconds
        self._filling = Filling()
        self._replay = Replay(spool.lanes if spool else {}, replay_bytes_per_second, time.monotonic())
        self._now_ns = now_ns
        self._sender = _Sender(bus.model_copy(update={"queue_bytes": self._limit_bytes}), linger_ms=bus.linger_ms)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._ending = False
        self._purge = ""
        self._told, self._told_at = False, 0.0
        self._synced_at = self._tried_at = self._acknowledged_at = time.monotonic()
        self._lines: dict[str, Line] = {}
        self._failed: Counter[str] = Counter()
        self.totals = AgentTotals(spool_limit_bytes=spool.max_bytes if spool else 0, spool_trouble=trouble)
        for topic, lane in spool.lanes.items() if spool else ():
            if lane.records or lane.disk_bytes:
                line = self._line(topic)
                line.spooling, line.flowing = True, False
        self._count()
        self._thread = threading.Thread(target=self._serve, name="publisher", daemon=True)
        self._thread.start()

    def offer(self, outs: Sequence[Out]) -> None:
        """Take all of these, or raise Busy where memory is full and the disk does not take them. Order within a topic is kept.

        After Busy some messages other than samples may have been taken: to offer them again doubles those and loses none.
        """
        groups: dict[str, list[Out]] = {}
        large = 0
        for out in outs:
            if out.value is not None and len(out.value) > MAX_VALUE_BYTES:
                large += 1
            else:
                groups.setdefault(out.topic, []).append(out)
        with self._lock:
            at = time.monotonic()
            lines = {topic: self._line(topic) for topic in sorted(groups, key=lambda topic: topic == SAMPLES)}
            self._make_room(sum(size_bytes(out) for topic, line in lines.items() if not line.spooling for out in groups[topic]))
            for topic, line in lines.items():
                if line.spooling:
                    self._write(line, groups[topic])
            for topic, line in lines.items():
                if not line.spooling:
                    line.add(Flight(groups[topic], sum(map(size_bytes, groups[topic]))), at)
                    if not self._sender.fatal:
                        line.send(self._sender, at)
            self._failed["too_large"] += large
            self._count()

    def close(self, timeout_seconds: float) -> int:
        """Wait at most so long for acknowledgements (not at all of a bus that is silent) and write to the spool what has none.

        How many messages are lost with the process: those that no spool could take.
        """
        deadline = time.monotonic() + timeout_seconds
        self._ending = True
        while self._in_memory() and time.monotonic() < deadline and not (self._spool and self.totals.silent_seconds):
            self._sender.producer.flush(min(0.2, timeout_seconds))
        self._closing.set()
        self._thread.join(2.0)
        with self._lock:
            self._settle(time.monotonic())
            direct = [line for line in self._lines.values() if not line.spooling and line.unacked]
            lost = sum(line.unacked for line in direct if not self._to_disk(line))
            self._count()
            self._sender.give_up()
            if self._spool is not None:
                force(self._spool.to_sync())
                self._spool.close()
        return lost

    def _in_memory(self) -> int:
        with self._lock:
            return sum(line.unacked for line in self._lines.values())

    def _line(self, topic: str) -> Line:
        line = self._lines.get(topic)
        if line is None:
            line = self._lines[topic] = Line(topic, time.monotonic())
        return line

    def _make_room(self, more_bytes: int) -> None:
        """See to it that memory has room for so much more, or that its lines go to the disk. Raises Busy."""
        held = sum(line.memory_bytes for line in self._lines.values())
        if not more_bytes or not held or held + more_bytes <= self._limit_bytes:
            return
        if self._spool is not None:
            written = [self._to_disk(line) for line in self._lines.values() if not line.spooling]
            if all(written):
                return
        waiting = sum(line.unacked for line in self._lines.values())
        raise Busy(_RETRY_SECONDS, f"bus: {waiting} messages are not acknowledged yet and fill {self._setting} ({self._limit_bytes})")

    def _to_disk(self, line: Line) -> bool:
        """Write what a line has in memory to the spool; it stays on its way to the broker. False where that does not work."""
        if self._spool is None:
            return False
        outs: list[Out] = []
        for flight in line.flights:
            left = flight.unacked()
            flight.frames = len(left)
            outs += left
        try:
            _, lost = self._spool.append(line.topic, outs, self._now_ns(), in_flight=True)
        except OSError:
            for flight in line.flights:
                flight.frames = 0
            if (lane := self._spool.lanes.get(line.topic)) is not None:
                lane.clear()
            return False
        self._over_board(lost)
        line.spooling = True
        return True

    def _write(self, line: Line, outs: Sequence[Out]) -> None:
        assert self._spool is not None
        try:
            taken, lost = self._spool.append(line.topic, outs, self._now_ns())
        except OSError as error:
            raise Busy(_RETRY_SECONDS, f"{self._spool.trouble or error} and the bus takes nothing") from None
        self._over_board(lost)
        self._replay.wrote(taken)
        if self._fsync_seconds == 0:
            self._spool.trouble = force(self._spool.to_sync())

    def _over_board(self, lost: Counter[str]) -> None:
        for topic, frames in lost.items():
            if self._line(topic).drop(frames):
                self._purge = "the spool is full: what it lost is not to be sent either"

    def _serve(self) -> None:
        while not self._closing.is_set():
            self._sender.poll(0.1)
            with self._lock:
                at = time.monotonic()
                self._settle(at)
                self._judge(at)
                self._renew(at)
                for line in self._lines.values():
                    if not self._sender.fatal:
                        line.send(self._sender, at)
                self._drain(at)
                self._count()
                due = self._spool is not None and at - self._synced_at >= self._fsync_seconds
                to_sync = self._spool.to_sync() if due and self._spool is not None else []
            if due:
                self._synced_at = at
            if to_sync and self._spool is not None:
                self._spool.trouble = force(to_sync) or self._spool.trouble

    def _settle(self, at: float, *, renewed: bool = False) -> None:
        for line in self._lines.values():
            heard, frames = line.settle(at, renewed=renewed)
            if line.spooling and self._spool is not None:
                self._spool.lanes[line.topic].acknowledge(frames)
            self.totals.acknowledged += heard.acked
            self.totals.replayed += heard.late
            self._failed["refused"] += heard.refused
            if heard.acked:
                self.totals.last_ack_ns = self._now_ns()
                self._acknowledged_at = at

    def _judge(self, at: float) -> None:
        """Which lines the broker does not take; where it takes none at all, what it was given goes back to the disk, few messages apart."""
        waiting = [line for line in self._lines.values() if line.flights]
        stuck = [line for line in waiting if at - line.since > self._patience_seconds]
        silent = at - self._acknowledged_at > self._patience_seconds and not all(line.why for line in stuck)
        away = bool(stuck) and len(stuck) == len(waiting) and silent
        since = max(self._acknowledged_at, min((line.since for line in stuck), default=at))
        self.totals.silent_seconds = at - since if away else 0.0
        self.totals.silent_why = self._sender.said if away else ""
        self._tell(away)
        self.totals.stuck = {} if away else {line.topic: line.why for line in stuck}
        if not stuck or self._spool is None:
            return
        if at - self._tried_at >= _RETRY_SECONDS:
            for line in stuck:
                if not line.spooling and not self._to_disk(line):
                    self._tried_at = at
        back = [line for line in stuck if line.spooling]
        for line in back:
            line.flowing = False
        if away and any(not flight.late or len(flight.outs) > PROBE_RECORDS for line in back for flight in line.flights):
            for line in back:
                self.totals.sent_twice += line.forget()
                self._spool.lanes[line.topic].rewind()
            self._purge = "the bus is silent: what it was given is sent anew"

    def _tell(self, away: bool) -> None:
        """Log that the bus fell silent, and that it is back: each once."""
        if away and not self._told:
            log.warning("bus silent", extra={"why": self.totals.silent_why, "waiting": self.totals.unacknowledged})
        elif self._told and not away and self._acknowledged_at >= self._told_at:
            log.info("bus answers again", extra={"waiting": self.totals.unacknowledged})
        else:
            return
        self._told, self._told_at = away, time.monotonic()

    def _renew(self, at: float) -> None:
        """Put a new producer in place of one that is beyond repair, or that holds what is not to be sent."""
        if self._sender.fatal and all(line.answered for line in self._lines.values()):
            self._purge = self._purge or next((line.why for line in self._lines.values() if line.why), "fatal error")
        if self._purge:
            self._sender.recreate(self._purge)
            self._purge = ""
            self._settle(at, renewed=True)

    def _drain(self, at: float) -> None:
        """Give each line that has nothing on its way its next messages from the spool."""
        if self._spool is None or self._ending or self._sender.fatal:
            return
        spooling = [line for line in self._lines.values() if line.spooling]
        for line in self._replay.refill(spooling, at, self._now_ns()):
            line.send(self._sender, at)

    def _count(self) -> None:
        totals, spool = self.totals, self._spool
        in_memory = sum(line.unacked for line in self._lines.values() if not line.spooling)
        totals.unacknowledged_bytes = sum(line.memory_bytes for line in self._lines.values())
        totals.spool_records = spool.records if spool else 0
        totals.unacknowledged = in_memory + totals.spool_records
        totals.failed = +(self._failed + spool.dropped) if spool else +self._failed
        if spool is not None:
            totals.spool_bytes = spool.disk_bytes
            totals.spool_full_seconds = self._filling.take(time.monotonic(), spool.disk_bytes, spool.max_bytes)
            oldest_ns = spool.oldest_ns
            totals.spool_oldest_seconds = max(0.0, (self._now_ns() - oldest_ns) / _NS_PER_SECOND) if oldest_ns else 0.0
            totals.spool_dropped_bytes = spool.dropped_bytes
            totals.spool_trouble = spool.trouble
