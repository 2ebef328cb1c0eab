"""The driver without Faust: what is acknowledged, what is published, and how it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from schemas import topics
from schemas.flow import Busy, DeadLetter, Emitted, Out, Partition, Reader, Record, Tick
from schemas.identity import partition_of
from schemas.status import LostRange, RunnerStatus
from streams.apps.driver import Driver
from tests.fakes.log_reader import LogReader

S = 1_000_000_000
HERE = Partition(topics.SAMPLES, 0)
NOW = 1000 * S


class Processor:
    """Repeats records; what it is told in `answers` comes first."""

    role = "echo"
    inputs = (topics.SAMPLES,)

    def __init__(self, *, silent_rebuild: bool = False, rewind_seconds: float = 0.0) -> None:
        self.silent_rebuild = silent_rebuild
        self.rewind_seconds = rewind_seconds
        self.answers: list[Exception] = []
        self.ticks: list[int] = []

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        self._raise()

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        self._raise()
        return [DeadLetter(r, "bad") if r.value == b"bad" else Out(topics.USAGE, b"k", r.value) for r in records]

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        self._raise()
        self.ticks.append(tick.at_ns // S)
        return [Out(topics.USAGE, b"k", b"tick")]

    def _raise(self) -> None:
        if self.answers:
            raise self.answers.pop(0)


class Log(LogReader):
    def __init__(self, low: int, logs: Mapping[tuple[str, int], Sequence[Record]]) -> None:
        super().__init__(logs)
        self.low = low

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        return self.low, len(self.logs[topic, partition])

    def timestamps(self, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
        return {p: self.logs[p][offset].timestamp_ns for p, offset in offsets.items()}


def record(offset: int, value: bytes = b"v") -> Record:
    return Record(*HERE, offset, b"k", value, (), offset * S)


class Bench:
    """A driver on a log of ten records, one a second."""

    def __init__(self, processor: Processor, check_rejects: Callable[[str, int, int, str], None] = lambda *_: None) -> None:
        self.published: list[bytes | None] = []
        self.dead: list[str] = []
        self.partitions = 1
        self.progress = self.low = self.opened = self.retries = 0
        self.status = RunnerStatus("echo")
        self.driver = Driver(
            processor,
            publish=self._publish,
            open_reader=self._open,
            status=self.status,
            clock=lambda: NOW,
            on_progress=self._beat,
            check_rejects=check_rejects,
        )

    async def _publish(self, emitted: Sequence[Emitted]) -> None:
        for _ in range(self.retries):
            self.driver.note_retry("no answer from the broker")
        self.published += [one.value for one in emitted if isinstance(one, Out)]
        self.dead += [one.reason for one in emitted if isinstance(one, DeadLetter)]

    @contextmanager
    def _open(self) -> Iterator[Log]:
        self.opened += 1
        yield Log(
            self.low, {HERE: [record(n) for n in range(10)], Partition(HERE.topic, self.partitions - 1): [record(n) for n in range(10)]}
        )

    def _beat(self) -> None:
        self.progress += 1


def test_records_come_out_in_order_and_may_be_acknowledged() -> None:
    async def scenario() -> None:
        bench = Bench(Processor())
        await bench.driver.assign({HERE: None}, 1)
        assert [await bench.driver.take(record(n, str(n).encode()), 1) for n in range(3)] == [True] * 3
        assert bench.published == [b"0", b"1", b"2"]
        assert (bench.status.processed_total, bench.status.published_total, bench.progress) == (3, 3, 3)

    asyncio.run(scenario())


@pytest.mark.parametrize(("offset", "generation"), [(4, 1), (9, 0)], ids=["read before", "of a former assignment"])
def test_what_belongs_to_another_assignment_is_left_alone(offset: int, generation: int) -> None:
    async def scenario() -> None:
        bench = Bench(Processor())
        await bench.driver.assign({HERE: 5}, 1)
        assert not await bench.driver.take(record(offset), generation)
        await bench.driver.release()
        assert not await bench.driver.take(record(9), 1)
        assert bench.published == []

    asyncio.run(scenario())


def test_busy_is_tried_again_in_place() -> None:
    async def scenario() -> None:
        processor = Processor()
        bench = Bench(processor)
        await bench.driver.assign({HERE: None}, 1)
        processor.answers = [Busy(0.0, "full"), Busy(0.0, "full")]
        assert await bench.driver.take(record(0), 1)
        assert bench.status.retries_total == 2
        assert bench.status.trouble == ""
        assert bench.published == [b"v"]

    asyncio.run(scenario())


def test_dead_letters_below_the_commit_are_not_written_again() -> None:
    async def scenario() -> None:
        bench = Bench(Processor(rewind_seconds=600))
        await bench.driver.assign({HERE: 2}, 1)
        for offset in range(3):
            await bench.driver.take(record(offset, b"bad"), 1)
        assert bench.dead == ["bad"]
        assert (bench.status.rebuilt_total, bench.status.processed_total) == (2, 1)

    asyncio.run(scenario())


def test_a_silent_rebuild_publishes_neither_records_nor_ticks() -> None:
    async def scenario() -> None:
        processor = Processor(rewind_seconds=600, silent_rebuild=True)
        bench = Bench(processor)
        await bench.driver.assign({HERE: 3}, 1)
        assert not bench.status.ready
        for offset in range(2):
            await bench.driver.take(record(offset), 1)
        await bench.driver.tick({})
        for offset in range(2, 4):
            await bench.driver.take(record(offset), 1)
        await bench.driver.tick({})
        assert bench.published == [b"v", b"tick"]
        assert processor.ticks == [1, 3]
        assert bench.status.ready

    asyncio.run(scenario())


def test_keys_where_no_producer_of_ours_would_put_them_are_counted_once_each() -> None:
    bench = Bench(Processor())
    bench.partitions = 4
    keys = [b"c/n%d" % n for n in range(8)]
    foreign = [key for key in keys if partition_of(key, 4) != HERE.partition]

    async def life() -> None:
        await bench.driver.assign({HERE: 0}, 1)
        for n in range(10):
            await bench.driver.take(record(n)._replace(key=keys[n % 8]), 1)

    asyncio.run(life())
    assert 0 < bench.status.foreign_keys_total == len(foreign) < 8


@pytest.mark.parametrize(
    ("low", "lost"),
    [(0, []), (2, []), (5, [LostRange(*HERE, 2, 4)]), (7, [LostRange(*HERE, 2, 6)]), (9, [LostRange(*HERE, 2, 6)])],
    ids=["marks of transactions", "just there", "in part", "retention", "and more since"],
)
def test_of_a_gap_in_the_offsets_only_what_the_broker_no_longer_has_is_lost(low: int, lost: list[LostRange]) -> None:
    async def scenario() -> None:
        bench = Bench(Processor())
        await bench.driver.assign({HERE: 2}, 1)
        bench.low = low
        await bench.driver.take(record(7), 1)
        assert bench.status.lost_ranges == lost
        assert bench.published == [b"v"]

    asyncio.run(scenario())


def test_gaps_that_follow_one_another_do_not_ask_the_broker_each_time() -> None:
    async def scenario() -> None:
        bench = Bench(Processor())
        await bench.driver.assign({HERE: 0}, 1)
        before = bench.opened
        for offset in (2, 4, 6, 8):
            await bench.driver.take(record(offset), 1)
        assert bench.opened == before + 1
        assert bench.status.lost_ranges == []

    asyncio.run(scenario())


def test_trouble_is_over_when_a_tick_or_a_publish_goes_well_although_no_record_comes() -> None:
    async def scenario() -> None:
        processor = Processor()
        bench = Bench(processor)
        await bench.driver.assign({HERE: 10}, 1)
        processor.answers = [Busy(0.0, "store away")]
        await bench.driver.tick({HERE: (10, 1001 * S)})
        assert bench.status.trouble == "store away"
        await bench.driver.tick({HERE: (10, 1002 * S)})
        assert bench.status.trouble == ""
        bench.retries = 1
        await bench.driver.tick({HERE: (10, 1003 * S)})
        assert bench.status.retries_total == 1
        assert bench.status.trouble == ""

    asyncio.run(scenario())


def test_time_is_the_watermark_while_something_is_left_and_then_what_the_broker_last_said() -> None:
    async def scenario() -> None:
        processor = Processor()
        bench = Bench(processor)
        await bench.driver.assign({HERE: 5}, 1)
        await bench.driver.tick({})
        for offset in range(5, 9):
            await bench.driver.take(record(offset), 1)
        await bench.driver.tick({})
        await bench.driver.take(record(9), 1)
        await bench.driver.tick({HERE: (10, 1003 * S)})
        await bench.driver.tick({HERE: (10, 1003 * S)})
        assert processor.ticks == [8, 1003]

    asyncio.run(scenario())


def test_a_defect_in_a_record_is_a_dead_letter_and_in_a_tick_the_end() -> None:
    async def scenario() -> None:
        processor = Processor()
        bench = Bench(processor)
        await bench.driver.assign({HERE: 9}, 1)
        processor.answers = [KeyError("x")]
        assert await bench.driver.take(record(9), 1)
        assert bench.dead == ["defect: KeyError: 'x'"]
        assert bench.status.defects_total == 1
        processor.answers = [ZeroDivisionError()]
        await bench.driver.tick({})
        assert isinstance(bench.driver.failure, ZeroDivisionError)
        assert bench.driver.failed.is_set()

    asyncio.run(scenario())


def test_a_failed_restore_ends_the_role() -> None:
    async def scenario() -> None:
        processor = Processor()
        processor.answers = [ConnectionError("gone")]
        bench = Bench(processor)
        await bench.driver.assign({HERE: 9}, 1)
        assert isinstance(bench.driver.failure, ConnectionError)
        assert not bench.status.ready

    asyncio.run(scenario())


def test_too_many_rejects_end_the_role_and_the_last_is_never_acknowledged() -> None:
    def refuse(*_: object) -> None:
        raise ValueError("too many")

    async def scenario() -> None:
        bench = Bench(Processor(), refuse)
        await bench.driver.assign({HERE: 9}, 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(bench.driver.take(record(9, b"bad"), 1), 0.05)
        assert str(bench.driver.failure) == "too many"
        assert bench.dead == []

    asyncio.run(scenario())
