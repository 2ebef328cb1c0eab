"""MemoryBus: partitioned logs, commits and a driver for processors in plain Python, for tests that need no broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from schemas.codec import HEADERS
from schemas.flow import BARRIER, Busy, DeadLetter, Emitted, Headers, Out, Partition, Processor, Record, Tick, tick_time
from schemas.identity import partition_of
from schemas.status import CountsDrops, LostRange, RunnerStatus
from schemas.topics import TOPICS
from xpulse.bus.outgoing import plan
from xpulse.bus.rejects import RejectWindow

if TYPE_CHECKING:
    from collections.abc import Iterable

START_NS: Final = 1_790_000_000_000_000_000
"""Where the bus's own clock begins; each record is a millisecond later unless the test says when."""

_MOST_TURNS: Final = 10_000


class Crashed(Exception):
    """The process died between two outputs, as the test wished."""


class MemoryBus:
    """Kafka as far as processors see it. `now_ns` is the broker's clock; tests may move it."""

    def __init__(self, *, partitions: int = 4) -> None:
        self._counts = {row.name: row.partitions or partitions for row in TOPICS}
        self._logs: dict[Partition, list[Record]] = {Partition(name, p): [] for name, count in self._counts.items() for p in range(count)}
        self._low: dict[Partition, int] = dict.fromkeys(self._logs, 0)
        self._order: list[Record] = []
        self.commits: dict[tuple[str, Partition], int] = {}
        self.now_ns = START_NS

    def send(self, topic: str, key: bytes, value: bytes | None, headers: Headers = HEADERS, *, timestamp_ns: int | None = None) -> Record:
        """Append one record, in the partition that murmur2 gives its key. Raises KeyError on a topic that is not ours."""
        partition = Partition(topic, partition_of(key, self._counts[topic]))
        log = self._logs[partition]
        self.now_ns = max(self.now_ns + 1_000_000, timestamp_ns or 0)
        record = Record(topic, partition.partition, len(log), key, value, headers, timestamp_ns or self.now_ns)
        log.append(record)
        self._order.append(record)
        return record

    def publish(self, emitted: Sequence[Emitted], group: str = "xpulse.memory", *, before: Callable[[Out], None] | None = None) -> None:
        """Append what a processor emitted, as the real publisher does (dead letters, sizes). `before` each output may raise."""
        for segment in plan(emitted, group).segments:
            for out in segment:
                if before is not None:
                    before(out)
                self.send(out.topic, out.key, out.value, out.headers, timestamp_ns=out.timestamp_ns)

    def records(self, topic: str) -> list[Record]:
        """Every record of a topic in the order of arrival, deleted ones too."""
        return [record for record in self._order if record.topic == topic]

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Forget the records below an offset, as retention does."""
        self._low[Partition(topic, partition)] = offset

    # Reader
    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
        here = Partition(topic, partition)
        for record in self._logs[here][self._low[here] :]:
            if since_ns is None or record.timestamp_ns >= since_ns:
                yield record

    def partitions(self, topic: str) -> int:
        return self._counts[topic]

    def run(
        self,
        processor: Processor,
        *,
        until: Callable[[], bool] | None = None,
        status: RunnerStatus | None = None,
        crash_after: int | None = None,
        batch: int = 500,
        owned: Iterable[int] | None = None,
    ) -> RunnerStatus:
        """One life of a role: assignment, restore, then batches, ticks and commits until `until` (default: nothing is left to read).

        `crash_after` outputs it raises Crashed, before anything of that batch is committed. `owned` limits it to partition numbers.
        """
        life = _Life(self, processor, status or RunnerStatus(processor.role), crash_after, batch)
        life.assign(sorted(p for p in self._logs if p.topic in processor.inputs and (owned is None or p.partition in set(owned))))
        for _ in range(_MOST_TURNS):
            idle = life.turn()
            if until() if until is not None else idle:
                return life.status
        raise AssertionError(f"{processor.role}: not done after {_MOST_TURNS} turns")

    def log(self, partition: Partition) -> tuple[int, list[Record]]:
        """The lowest offset there is, and the records by offset."""
        return self._low[partition], self._logs[partition]


class _Life:
    def __init__(self, bus: MemoryBus, processor: Processor, status: RunnerStatus, crash_after: int | None, batch: int) -> None:
        self.status = status
        self._bus = bus
        self._processor = processor
        self._group = f"xpulse.{processor.role}"
        self._left_until_crash = crash_after
        self._batch = batch
        self._next: dict[Partition, int] = {}
        self._rebuild_until: dict[Partition, int] = {}
        self._watermarks: dict[Partition, int] = {}
        self._held: tuple[list[Record], list[Record]] | None = None
        self._rejects = RejectWindow()
        self._last_tick_ns = 0

    def assign(self, owned: Sequence[Partition]) -> None:
        for partition in owned:
            low, log = self._bus.log(partition)
            commit = self._bus.commits.get((self._group, partition))
            start = low if commit is None else commit
            if start < low:
                self.status.lost_ranges.append(LostRange(partition.topic, partition.partition, start, low - 1))
                start = low
            self._next[partition] = self._rebuild_until[partition] = start
            if commit is not None and self._processor.rewind_seconds > 0:
                first_ns = log[start].timestamp_ns if start < len(log) else self._bus.now_ns
                since_ns = first_ns - round(self._processor.rewind_seconds * 1e9)
                self._next[partition] = next((r.offset for r in log[low:start] if r.timestamp_ns >= since_ns), start)
        self._processor.restore(self._bus, frozenset(owned))
        self.status.ready = True

    def turn(self) -> bool:
        """One batch and one tick; whether nothing was left to read."""
        rebuilt, live = self._held or self._take()
        idle = not rebuilt and not live
        try:
            if rebuilt:
                emitted = self._processor.process(rebuilt)
                self.status.rebuilt_total += len(rebuilt)
                rebuilt.clear()
                if not self._processor.silent_rebuild:
                    self._publish([item for item in emitted if not isinstance(item, DeadLetter)])
            if live:
                emitted = self._processor.process(live)
                dead = [item.reason for item in emitted if isinstance(item, DeadLetter)]
                self._rejects.note(self._processor.role, len(live), len(dead), dead[-1] if dead else "")
                self._publish(emitted)
                self.status.processed_total += len(live)
        except Busy as busy:
            self._held = (rebuilt, live)
            self.status.retries_total += 1
            self.status.trouble = busy.reason
            return False
        self._held = None
        for partition, offset in self._next.items():
            if offset >= self._rebuild_until[partition]:
                self._bus.commits[(self._group, partition)] = offset
        self._tick()
        return idle

    def _take(self) -> tuple[list[Record], list[Record]]:
        rebuilt: list[Record] = []
        live: list[Record] = []
        for partition in self._next:
            _, log = self._bus.log(partition)
            for record in log[self._next[partition] : self._next[partition] + self._batch - len(rebuilt) - len(live)]:
                (rebuilt if record.offset < self._rebuild_until[partition] else live).append(record)
                self._next[partition] = record.offset + 1
                self._watermarks[partition] = max(self._watermarks.get(partition, 0), record.timestamp_ns)
        return rebuilt, live

    def _tick(self) -> None:
        lags = {p: len(self._bus.log(p)[1]) - offset for p, offset in self._next.items()}
        self.status.assigned = dict(lags)
        if isinstance(self._processor, CountsDrops):
            self.status.dropped_total = self._processor.dropped.copy()
        at_ns = tick_time(self._next, self._watermarks, lags, self._bus.now_ns)
        if at_ns is None or at_ns <= self._last_tick_ns:
            return
        rebuilding = any(offset < self._rebuild_until[p] for p, offset in self._next.items())
        try:
            emitted = self._processor.tick(Tick(at_ns))
        except Busy as busy:
            self.status.trouble = busy.reason
            return
        self._last_tick_ns = at_ns
        if not (rebuilding and self._processor.silent_rebuild):
            self._publish(emitted)

    def _publish(self, emitted: Sequence[Emitted]) -> None:
        self._bus.publish(emitted, self._group, before=self._count_down)
        self.status.published_total += sum(1 for item in emitted if isinstance(item, Out))
        self.status.dead_letters_total += sum(1 for item in emitted if item is not BARRIER and isinstance(item, DeadLetter))

    def _count_down(self, _out: Out) -> None:
        if self._left_until_crash is not None:
            if self._left_until_crash == 0:
                raise Crashed
            self._left_until_crash -= 1
