"""What only a broker can show: killed processes, outages, deleted records, order of acknowledgement."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from schemas.codec import HEADERS
from schemas.flow import BARRIER, Busy, Out
from schemas.identity import partition_of
from schemas.status import LostRange, RunnerStatus
from schemas.topics import ALERT_STATE, ALERTS, FINDINGS, SAMPLES, TOPICS, USAGE
from tests.conformance.bus.conftest import OnKafka
from tests.conformance.bus.processors import Relay
from xpulse.bus.agent import AgentPublisher
from xpulse.bus.embedded import EmbeddedBroker
from xpulse.bus.loop import run
from xpulse.bus.producer import AsyncPublisher, Publisher, Stopped
from xpulse.bus.reader import BusReader
from xpulse.bus.settings import Bus
from xpulse.bus.tail import letters, replay, tail


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tuple((row.name, row.partitions or 4) for row in TOPICS)) as started:
        yield started


@pytest.fixture
def bus(broker: EmbeddedBroker) -> Bus:
    return Bus(brokers=broker.bootstrap, embedded=True)


def test_topics_have_the_partitions_asked_for(bus: Bus) -> None:
    with BusReader(bus) as reader:
        assert (reader.partitions(SAMPLES), reader.partitions(FINDINGS)) == (4, 1)


def test_kill_9_loses_nothing_and_repeats_only_what_was_not_committed(embedded: OnKafka) -> None:
    bus = embedded.bus
    command = [sys.executable, "-m", "tests.conformance.bus.relay_process", bus.brokers, "t1.", "embedded"]
    publisher = Publisher(bus, "tests")
    sent = 0
    for _ in range(1):
        process = subprocess.Popen(command)
        before = len(embedded.records(USAGE))
        while len(embedded.records(USAGE)) < before + 100:
            publisher.publish([Out(SAMPLES, b"c/n%d" % (i % 8), b"%06d" % i, HEADERS) for i in range(sent, sent + 50)])
            sent += 50
            assert process.poll() is None
        process.kill()
        process.wait()
    relay = Relay()
    bus_g = bus.model_copy(update={"group_prefix": "t1."})
    OnKafka(bus_g).run(relay, lambda: len({r.value for r in embedded.records(USAGE)}) >= sent)
    arrived = Counter(r.value for r in embedded.records(USAGE))
    assert set(arrived) == {b"%06d" % i for i in range(sent)}
    assert max(arrived.values()) <= 3


def test_records_deleted_before_they_were_read_are_reported(broker: EmbeddedBroker, bus: Bus) -> None:
    on = OnKafka(bus)
    partition = partition_of(b"c/n", 4)
    on.send(SAMPLES, b"c/n", b"v0")
    first = Relay()
    on.run(first, lambda: len(first.seen) >= 1)
    for i in range(1, 9):
        on.send(SAMPLES, b"c/n", b"v%d" % i)
    broker.delete_before(SAMPLES, partition, 5)
    second = Relay()
    status = on.run(second, lambda: len(second.seen) >= 4)
    assert status.lost_ranges == [LostRange(SAMPLES, partition, 1, 4)]
    assert [r.offset for r in second.seen] == [5, 6, 7, 8]


def test_records_deleted_under_a_running_role_are_reported(bus: Bus) -> None:
    on = OnKafka(bus)
    publisher = Publisher(bus, "tests")

    def fill(_records: object) -> None:
        if not relay.seen:  # the broker keeps 5 MiB a partition; the role has fetched ahead a part of what it drops
            publisher.publish([Out(SAMPLES, b"c/n", random.randbytes(10_000), HEADERS) for _ in range(2000)])

    relay = Relay(before=fill)
    on.send(SAMPLES, b"c/n", b"v0")
    status = on.run(relay, lambda: bool(relay.seen) and relay.seen[-1].offset == 2000)
    gone = {offset for lost in status.lost_ranges for offset in range(lost.first, lost.last + 1)}
    assert gone
    assert sorted(gone | {r.offset for r in relay.seen}) == list(range(2001))
    assert not gone & {r.offset for r in relay.seen}


def test_an_outage_is_waited_out(broker: EmbeddedBroker, bus: Bus) -> None:
    retries: list[str] = []
    publisher = Publisher(bus, "g", on_retry=retries.append)
    publisher.publish([Out(ALERTS, b"k", b"before", HEADERS)])
    broker.set_reachable(False)
    thread = threading.Thread(target=publisher.publish, args=([Out(ALERTS, b"k", b"during", HEADERS)],))
    thread.start()
    wait_for(lambda: len(retries) >= 2)
    broker.set_reachable(True)
    thread.join(20)
    assert not thread.is_alive()
    with BusReader(bus) as reader:
        assert [r.value for r in reader.read(ALERTS, 0)] == [b"before", b"during"]


def test_a_role_told_to_stop_does_not_wait_for_a_broker_that_is_away(broker: EmbeddedBroker, bus: Bus) -> None:
    stop, status, relay = threading.Event(), RunnerStatus("attribute"), Relay()
    thread = threading.Thread(target=run, args=(relay, bus), kwargs={"status": status, "stop": stop})
    thread.start()
    wait_for(lambda: status.ready)
    broker.set_reachable(False)
    time.sleep(0.3)
    stop.set()
    thread.join(2.5)  # the supervisor kills after three seconds
    assert not thread.is_alive()
    publisher = Publisher(bus, "g", stop=stop)
    with pytest.raises(Stopped):
        publisher.publish([Out(ALERTS, b"k", b"v", HEADERS)])


def test_nothing_after_a_barrier_is_sent_before_all_in_front_is_acknowledged(broker: EmbeddedBroker, bus: Bus) -> None:
    publisher = Publisher(bus, "g")
    publisher.publish([Out(ALERTS, b"k", b"warm", HEADERS)])
    emitted = [Out(ALERTS, b"k%d" % i, b"alert", HEADERS) for i in range(200)] + [BARRIER, Out(ALERT_STATE, b"k", b"state", HEADERS)]
    broker.set_reachable(False)
    thread = threading.Thread(target=publisher.publish, args=(emitted,))
    thread.start()
    wait_for(lambda: len(publisher._sender.producer) == 200)
    time.sleep(0.3)
    assert len(publisher._sender.producer) == 200  # the state is not even queued
    broker.set_reachable(True)
    thread.join(20)
    with BusReader(bus) as reader:
        last_alert = list(reader.read(ALERTS, 0))[-1]
        (state,) = reader.read(ALERT_STATE, 0)
    assert state.timestamp_ns >= last_alert.timestamp_ns


def test_a_missing_topic_is_waited_for_and_named(broker: EmbeddedBroker) -> None:
    retries: list[str] = []
    stop = threading.Event()
    publisher = Publisher(Bus(brokers=broker.bootstrap, embedded=True, topic_prefix="not-made."), "g", stop=stop, on_retry=retries.append)

    def publish() -> None:
        with pytest.raises(Stopped):
            publisher.publish([Out(ALERTS, b"k", b"v", HEADERS)])

    thread = threading.Thread(target=publish)
    thread.start()
    wait_for(lambda: any("topic" in reason.lower() for reason in retries))
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


def test_async_publishes_overlap_and_all_arrive(bus: Bus) -> None:
    publisher = AsyncPublisher(bus, "g")

    async def all_of_them() -> None:
        await asyncio.gather(*(publisher([Out(USAGE, b"c/n%d" % i, b"%d" % i, HEADERS)]) for i in range(200)))

    asyncio.run(all_of_them())
    publisher.close()
    assert publisher.published_total == 200
    assert {r.value for r in OnKafka(bus).records(USAGE)} == {b"%d" % i for i in range(200)}


def test_the_agent_is_told_busy_when_its_memory_is_full_and_loses_nothing_of_what_was_taken(broker: EmbeddedBroker, bus: Bus) -> None:
    agent = AgentPublisher(bus.model_copy(update={"queue_bytes": 1024 * 1024}))
    agent.offer([Out(SAMPLES, b"c/n", b"first", HEADERS)])
    wait_for(lambda: agent.totals.acknowledged == 1)
    broker.set_reachable(False)
    for i in range(10):
        agent.offer([Out(SAMPLES, b"c/n", b"%d" % i + b"x" * 100_000, HEADERS)])
    with pytest.raises(Busy, match=r"10 messages are not acknowledged yet and fill bus.queue_bytes"):
        agent.offer([Out(SAMPLES, b"c/n", b"x" * 100_000, HEADERS)])
    assert agent.totals.unacknowledged == 10
    broker.set_reachable(True)
    assert agent.close(20) == 0
    assert agent.totals.acknowledged == 11
    assert agent.totals.last_ack_ns > 0
    with BusReader(bus) as reader:
        found = [r.value for r in reader.read(SAMPLES, partition_of(b"c/n", 4))]
    assert [v[:1] for v in found if v] == [b"f", *(b"%d" % i for i in range(10))]


def test_foreign_partitioners_are_reported(bus: Bus) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bus.brokers})
    wrong = (partition_of(b"c/n", 4) + 1) % 4
    producer.produce(SAMPLES, b"v", b"c/n", wrong, headers=list(HEADERS))
    producer.flush(10)
    relay = Relay()
    status = OnKafka(bus).run(relay, lambda: len(relay.seen) >= 1)
    assert status.foreign_keys_total == 1


def test_dead_letters_are_listed_repaired_and_sent_back(bus: Bus) -> None:
    on = OnKafka(bus)
    on.send(SAMPLES, b"c/n", b"bad", HEADERS)
    relay = Relay()
    on.run(relay, lambda: len(relay.seen) >= 1)
    with BusReader(bus) as reader:
        (letter,) = letters(reader)
        assert not isinstance(letter, str)
        publisher = Publisher(bus, "xpulse.replay")
        assert replay(reader, publisher.publish, [(letter.partition, letter.offset)], value=b"good") == []
    again = Relay()
    on.run(again, lambda: len(again.seen) >= 1)
    assert [r.value for r in on.records(USAGE)] == [b"good"]
    assert ("xpulse-replay", f"{letter.partition}/{letter.offset}".encode()) in again.seen[0].headers
    assert len(list(tail(bus, "xpulse.usage"))) == 1
