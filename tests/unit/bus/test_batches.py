"""How many records a processor is given at once, on the embedded bus."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from schemas.codec import HEADERS
from schemas.flow import Emitted, Out, Partition, Reader, Record, TakesMany, Tick
from schemas.status import RunnerStatus
from schemas.topics import SAMPLES
from sinks.sqlite.writer import SqliteWriter
from sinks.store import StoreProcessor
from xpulse.bus.embedded import EmbeddedBroker
from xpulse.bus.intake import BATCH
from xpulse.bus.loop import run
from xpulse.bus.producer import Publisher
from xpulse.bus.settings import Bus

RECORDS = 1200


@dataclass
class Counting:
    """Counts the records of each call; stops the loop when all have come."""

    stop: threading.Event
    role: str = "detect"
    inputs: tuple[str, ...] = (SAMPLES,)
    rewind_seconds: float = 0.0
    silent_rebuild: bool = False
    sizes: list[int] = field(default_factory=list)

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """Nothing is kept."""

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        self.sizes.append(len(records))
        if len(self.sizes) == 1:
            time.sleep(1.0)  # the rest is fetched meanwhile
        if sum(self.sizes) >= RECORDS:
            self.stop.set()
        return []

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        return []


@dataclass
class CountingMany(Counting):
    most_records: int = RECORDS


@pytest.mark.parametrize(("kind", "most"), [(Counting, BATCH), (CountingMany, RECORDS)], ids=["a processor", "one that takes many"])
def test_a_role_that_is_behind_is_given_full_batches(kind: type[Counting], most: int) -> None:
    with EmbeddedBroker(((SAMPLES, 4),)) as broker:
        bus = Bus(brokers=broker.bootstrap, embedded=True)
        publisher = Publisher(bus, "tests")
        publisher.publish([Out(SAMPLES, b"c/n%d" % (i % 16), b"%d" % i, HEADERS) for i in range(RECORDS)])
        publisher.close()
        processor = kind(threading.Event())
        run(processor, bus, status=RunnerStatus("detect"), stop=processor.stop)
    assert sum(processor.sizes) == RECORDS
    assert max(processor.sizes) <= most
    assert (max(processor.sizes) > BATCH) == (most > BATCH)


def test_stores_take_many_and_stream_processors_do_not(tmp_path: Path) -> None:
    store = StoreProcessor("sqlite", SqliteWriter(tmp_path / "store.sqlite", retention_ns=1, max_bytes=1 << 24))
    assert isinstance(store, TakesMany)
    store.close()
    assert not isinstance(Counting(threading.Event()), TakesMany)
