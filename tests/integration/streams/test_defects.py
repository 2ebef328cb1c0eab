"""A processor that fails on one record: under either runner it is a dead letter, and all others come out as if it were not there."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from schemas import topics
from schemas.flow import Emitted, Out, Partition, Reader, Record, Tick
from schemas.status import RunnerStatus
from tests.integration.servers.kafka import KafkaServer
from tests.integration.stack import kafka_bus
from tests.integration.streams.echo import ROLE, Echo, runner
from xpulse.bus.dlq import read_letter
from xpulse.bus.embedded import EmbeddedBroker
from xpulse.bus.loop import run as run_direct
from xpulse.bus.reader import BusReader
from xpulse.bus.settings import Bus

LOCAL = [(name, 2) for name in (topics.SAMPLES, topics.ALLOCATIONS, topics.USAGE, topics.DLQ)]


class Faulty(Echo):
    """Says of each record the how manieth of its key it is; fails on one that says `defect`, in the midst of a batch."""

    def __init__(self) -> None:
        super().__init__(rewind_seconds=600.0, silent_rebuild=True)
        self.count: Counter[bytes] = Counter()
        self.largest_batch = 0

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        super().restore(reader, owned)
        self.count.clear()

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        self.largest_batch = max(self.largest_batch, len(records))
        emitted: list[Emitted] = []
        for record in records:
            if record.value == b"defect":
                raise ValueError("the test says so")
            key = record.key or b""
            self.count[key] += 1
            emitted.append(Out(topics.USAGE, key, b"%s %d" % (record.value, self.count[key]), record.headers))
        return emitted

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        return []


@contextmanager
def under(name: str, processor: Faulty, bus: Bus, folder: Path) -> Iterator[RunnerStatus]:
    status, stop = RunnerStatus(ROLE), threading.Event()

    def run() -> None:
        if name == "direct":
            run_direct(processor, bus, status=status, stop=stop)
            return
        made, publisher = runner(processor, bus, folder, status, stop)
        made.run(stop)
        publisher.close(1.0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield status
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def read(bus: Bus, topic: str) -> list[Record]:
    with BusReader(bus) as reader:
        return [record for partition in range(reader.partitions(topic)) for record in reader.read(topic, partition)]


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.05)


def send(bus: Bus, values: Sequence[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bus.brokers, "partitioner": "murmur2_random"})
    for number, value in enumerate(values):
        producer.produce(bus.wire(topics.SAMPLES), value, b"node-%d" % (number % 3))
    producer.flush(10)


@pytest.mark.parametrize("name", ["faust", "direct"])
def test_only_the_record_it_fails_on_is_a_dead_letter(name: str, tmp_path: Path) -> None:
    with EmbeddedBroker(LOCAL) as broker:
        lives(name, Bus(brokers=broker.bootstrap, embedded=True), tmp_path)


@pytest.mark.integration
@pytest.mark.parametrize("name", ["faust", "direct"])
def test_so_it_is_on_kafka(name: str, kafka_server: KafkaServer, tmp_path: Path) -> None:
    lives(name, kafka_bus(kafka_server), tmp_path)


def lives(name: str, bus: Bus, tmp_path: Path) -> None:
    """Two lives of the role: one that meets two defects, and one that reads them again to rebuild its state."""
    values = [b"%d" % n for n in range(30)]
    values[10] = values[20] = b"defect"
    send(bus, values)
    processor = Faulty()
    with under(name, processor, bus, tmp_path) as status:
        until(lambda: status.processed_total == 30)
        send(bus, [b"after"] * 3)
        until(lambda: status.processed_total == 33)
    assert (status.defects_total, status.dead_letters_total) == (2, 2)
    if name == "direct":
        assert processor.largest_batch > 1, "nothing was shown about a batch"

    wanted: Counter[bytes] = Counter()
    expected = []
    for number, value in enumerate([*values, *[b"after"] * 3]):
        key = b"node-%d" % (number % 3)
        if value != b"defect":
            wanted[key] += 1
            expected.append(b"%s %d" % (value, wanted[key]))
    assert sorted(r.value or b"" for r in read(bus, topics.USAGE)) == sorted(expected)
    letters = [read_letter(record) for record in read(bus, topics.DLQ)]
    assert [letter.reason for letter in letters] == ["defect: ValueError: the test says so"] * 2

    with under(name, Faulty(), bus, tmp_path) as again:  # what is read again to rebuild has the defects in it
        until(lambda: again.rebuilt_total >= 33 and again.ready)
        send(bus, [b"later"])
        until(lambda: again.processed_total == 1)
    assert again.dead_letters_total == 0
    assert len(read(bus, topics.DLQ)) == 2
