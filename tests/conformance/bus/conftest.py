"""The three buses that the conformance tests run on, behind one small face."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import pytest

from schemas.codec import HEADERS
from schemas.flow import Emitted, Headers, Out, Processor, Record
from schemas.status import RunnerStatus
from schemas.topics import TOPICS
from xpulse.bus.admin import create_topics
from xpulse.bus.embedded import EmbeddedBroker
from xpulse.bus.loop import run
from xpulse.bus.producer import Publisher
from xpulse.bus.reader import BusReader
from xpulse.bus.settings import Bus
from xpulse.testing import Crashed, MemoryBus

if TYPE_CHECKING:
    from tests.integration.servers.kafka import KafkaServer


class AnyBus(Protocol):
    """Send, run a role for a while, and look at what came of it."""

    def send(self, topic: str, key: bytes, value: bytes | None, headers: Headers = HEADERS) -> None: ...

    def run(self, processor: Processor, until: Callable[[], bool], *, crash_after: int | None = None) -> RunnerStatus: ...

    def records(self, topic: str) -> list[Record]: ...

    def reader(self) -> BusReader | MemoryBus: ...


class OnMemory:
    """The bus of xpulse.testing."""

    def __init__(self) -> None:
        self._bus = MemoryBus()

    def send(self, topic: str, key: bytes, value: bytes | None, headers: Headers = HEADERS) -> None:
        self._bus.send(topic, key, value, headers)

    def run(self, processor: Processor, until: Callable[[], bool], *, crash_after: int | None = None) -> RunnerStatus:
        return self._bus.run(processor, until=until, crash_after=crash_after, batch=10)

    def records(self, topic: str) -> list[Record]:
        return self._bus.records(topic)

    def reader(self) -> MemoryBus:
        return self._bus


class OnKafka:
    """A broker that speaks Kafka's protocol: the embedded one or Apache Kafka."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self._publisher = Publisher(bus, "tests")

    def send(self, topic: str, key: bytes, value: bytes | None, headers: Headers = HEADERS) -> None:
        self._publisher.publish([Out(topic, key, value, headers)])

    def run(self, processor: Processor, until: Callable[[], bool], *, crash_after: int | None = None) -> RunnerStatus:
        """The real loop in a thread, stopped when `until` holds. A crash is a publish that never returns normally."""
        status, stop = RunnerStatus(processor.role), threading.Event()
        publish = None if crash_after is None else crashing(Publisher(self.bus, self.bus.group(processor.role)), crash_after)
        ended: list[BaseException | None] = []

        def live() -> None:
            try:
                run(processor, self.bus, status=status, stop=stop, publish=publish)
                ended.append(None)
            except BaseException as error:
                ended.append(error)

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        deadline = time.monotonic() + 25
        while not ended and not until() and time.monotonic() < deadline:
            time.sleep(0.02)
        stop.set()
        thread.join(10)
        assert ended, "the loop does not end"
        if ended[0] is not None:
            raise ended[0]
        assert until(), f"not reached in time: {status}"
        return status

    def records(self, topic: str) -> list[Record]:
        with self.reader() as reader:
            found = [r for partition in range(reader.partitions(topic)) for r in reader.read(topic, partition)]
        return sorted(found, key=lambda record: record.timestamp_ns)

    def reader(self) -> BusReader:
        return BusReader(self.bus)


def crashing(publisher: Publisher, after: int) -> Callable[[Sequence[Emitted]], None]:
    """A publish that raises Crashed after so many outputs."""
    left = after

    def publish(emitted: Sequence[Emitted]) -> None:
        nonlocal left
        publisher.publish(emitted[:left])
        if len(emitted) > left:
            raise Crashed
        left -= len(emitted)

    return publish


@pytest.fixture
def embedded() -> Iterator[OnKafka]:
    """An embedded broker of this test's own."""
    with EmbeddedBroker(tuple((f"t1.{row.name}", row.partitions or 4) for row in TOPICS)) as broker:
        yield OnKafka(Bus(brokers=broker.bootstrap, embedded=True, topic_prefix="t1.", group_prefix="g1."))


@pytest.fixture(params=["memory", "embedded", pytest.param("kafka", marks=pytest.mark.integration)])
def any_bus(request: pytest.FixtureRequest) -> AnyBus:
    """Each bus in turn."""
    if request.param == "memory":
        return OnMemory()
    if request.param == "embedded":
        on_embedded: OnKafka = request.getfixturevalue("embedded")
        return on_embedded
    server: KafkaServer = request.getfixturevalue("kafka_server")
    prefix = f"{uuid.uuid4().hex[:8]}."
    bus = Bus(
        brokers=server.bootstrap,
        topic_prefix=prefix,
        group_prefix=prefix,
        partitions=4,
        replication_factor=1,
        min_insync_replicas=1,
    )
    create_topics(bus)
    return OnKafka(bus)
