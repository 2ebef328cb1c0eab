"""The Faust app on the embedded bus: order, nothing lost, dead letters, back-pressure, rebuilds, and what a kill leaves behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from schemas import topics
from schemas.flow import Emitted, Partition, Record
from schemas.status import LostRange, RunnerStatus
from streams.apps.connection import FaustConnection
from streams.apps.run import FaustRunner
from tests.integration.streams.echo import ROLE, Echo, runner
from xpulse.bus.embedded import EmbeddedBroker
from xpulse.bus.reader import BusReader
from xpulse.bus.settings import Bus

PARTITIONS = 4
PREFIX = "site-"
LOCAL = [(PREFIX + name, PARTITIONS) for name in (topics.SAMPLES, topics.ALLOCATIONS, topics.USAGE, topics.DLQ)]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(LOCAL) as started:
        yield started


@pytest.fixture
def bus(broker: EmbeddedBroker) -> Bus:
    return Bus(brokers=broker.bootstrap, embedded=True, topic_prefix=PREFIX, group_prefix=PREFIX)


def send(bus: Bus, values: Sequence[bytes | None], *, topic: str = topics.SAMPLES, keys: int = 7) -> None:
    producer = Producer({"bootstrap.servers": bus.brokers, "partitioner": "murmur2_random"})
    for number, value in enumerate(values):
        producer.produce(bus.wire(topic), value, f"node-{number % keys}", headers=[("schema-version", b"1.0")])
    producer.flush(10)


def read(bus: Bus, topic: str) -> list[Record]:
    with BusReader(bus) as reader:
        return [record for partition in range(PARTITIONS) for record in reader.read(topic, partition)]


def until(reached: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.05)


@contextmanager
def running(processor: Echo, bus: Bus, folder: Path) -> Iterator[RunnerStatus]:
    status, stop = RunnerStatus(ROLE), threading.Event()
    made, publisher = runner(processor, bus, folder, status, stop)
    thread = threading.Thread(target=made.run, args=(stop,))
    thread.start()
    try:
        yield status
    finally:
        stop.set()
        thread.join(10)
        publisher.close(1.0)
    assert not thread.is_alive(), "the worker did not stop"


def by_key(records: Sequence[Record]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for record in records:
        found.setdefault(record.key or b"", []).append(record.value or b"")
    return found


def numbers(count: int) -> list[bytes]:
    return [str(n).encode() for n in range(count)]


def test_everything_arrives_in_order_and_time_passes(bus: Bus, tmp_path: Path) -> None:
    send(bus, numbers(500))
    echo = Echo()
    before_ns = time.time_ns()
    with running(echo, bus, tmp_path) as status:
        until(lambda: status.published_total == 500 and len(echo.ticks) > 1)
    assert by_key(read(bus, topics.USAGE)) == by_key(read(bus, topics.SAMPLES))
    assert echo.seen[0].headers == (("schema-version", b"1.0"),)
    assert echo.restored == [frozenset(Partition(t, p) for t in Echo.inputs for p in range(PARTITIONS))]
    assert status.ready
    assert status.lag == 0
    assert echo.ticks == sorted(set(echo.ticks))
    assert before_ns < echo.ticks[-1] <= time.time_ns()


def test_bad_records_are_dead_letters_busy_is_retried_and_deletions_are_records(bus: Bus, tmp_path: Path) -> None:
    send(bus, [b"1", b"bad", b"busy", b"defect", b"2"], keys=1)
    send(bus, [None], topic=topics.ALLOCATIONS, keys=1)
    echo = Echo()
    with running(echo, bus, tmp_path) as status:
        until(lambda: status.processed_total == 6)
    assert [r.value for r in read(bus, topics.USAGE)] == [b"1", b"busy", b"2"]
    assert [(r.value, dict(r.headers)["reason"]) for r in read(bus, topics.DLQ)] == [
        (b"bad", b"the test says so"),
        (b"defect", b"defect: ValueError: the test says so"),
    ]
    assert status.retries_total == 2
    assert (topics.ALLOCATIONS, None) in [(r.topic, r.value) for r in echo.seen]


def test_a_restart_goes_on_after_the_last_record(bus: Bus, tmp_path: Path) -> None:
    send(bus, numbers(20))
    with running(Echo(), bus, tmp_path) as status:
        until(lambda: status.processed_total == 20)
    send(bus, [b"after"])
    echo = Echo()
    with running(echo, bus, tmp_path) as status:
        until(lambda: status.processed_total == 1)
    assert [r.value for r in echo.seen] == [b"after"]


@pytest.mark.parametrize(("silent", "published"), [(True, 21), (False, 41)], ids=["silent", "published again"])
def test_a_rebuild_reads_below_the_commit(bus: Bus, tmp_path: Path, silent: bool, published: int) -> None:
    send(bus, numbers(20))
    with running(Echo(), bus, tmp_path) as status:
        until(lambda: status.processed_total == 20)
    send(bus, [b"after"])
    echo = Echo(rewind_seconds=120, silent_rebuild=silent)
    with running(echo, bus, tmp_path) as status:
        until(lambda: status.processed_total == 1 and status.rebuilt_total == 20)
    assert len(echo.seen) == 21
    assert len(read(bus, topics.USAGE)) == published
    echo = Echo()
    with running(echo, bus, tmp_path) as status:  # the rebuild did not move the commit back
        until(lambda: status.ready)
        time.sleep(0.5)
    assert echo.seen == []


def test_records_that_the_broker_lost_are_reported(broker: EmbeddedBroker, bus: Bus, tmp_path: Path) -> None:
    send(bus, numbers(10), keys=1)
    with running(Echo(), bus, tmp_path) as status:
        until(lambda: status.processed_total == 10)
    partition = next(p for p in range(PARTITIONS) if read_one(bus, p))
    send(bus, numbers(10), keys=1)
    broker.delete_before(bus.wire(topics.SAMPLES), partition, 15)
    with running(Echo(), bus, tmp_path) as status:
        until(lambda: status.processed_total == 5)
    assert status.lost_ranges == [LostRange(topics.SAMPLES, partition, 10, 14)]


def read_one(bus: Bus, partition: int) -> list[Record]:
    with BusReader(bus) as reader:
        return list(reader.read(topics.SAMPLES, partition))


def test_what_is_in_hand_at_a_stop_is_not_acknowledged(bus: Bus, tmp_path: Path) -> None:
    send(bus, [b"in hand"])
    reached, stop = threading.Event(), threading.Event()

    async def never(_: Sequence[Emitted]) -> None:
        reached.set()
        await asyncio.Event().wait()

    connection = FaustConnection(
        brokers=bus.brokers, group=bus.group(ROLE), state_folder=tmp_path, prefix=PREFIX, embedded=True, session_timeout_seconds=3.0
    )
    stuck = FaustRunner(Echo(), connection, publish=never, open_reader=lambda: BusReader(bus), status=RunnerStatus(ROLE))
    thread = threading.Thread(target=stuck.run, args=(stop,))
    thread.start()
    assert reached.wait(30)
    assert stuck.has_work()
    stop.set()
    started = time.monotonic()
    thread.join(10)
    assert time.monotonic() - started < 3.0
    with running(Echo(), bus, tmp_path) as status:
        until(lambda: status.processed_total == 1)
    assert [r.value for r in read(bus, topics.USAGE)] == [b"in hand"]


def test_the_role_ends_with_what_a_restore_or_the_reject_check_raises(bus: Bus, tmp_path: Path) -> None:
    class Refusing(Exception):
        pass

    def refuse(*_: object) -> None:
        raise Refusing

    async def sent(_: Sequence[Emitted]) -> None:
        return

    send(bus, [b"bad"])
    connection = FaustConnection(
        brokers=bus.brokers, group=bus.group(ROLE), state_folder=tmp_path, prefix=PREFIX, embedded=True, session_timeout_seconds=3.0
    )
    checking = FaustRunner(
        Echo(), connection, publish=sent, open_reader=lambda: BusReader(bus), status=RunnerStatus(ROLE), check_rejects=refuse
    )
    with pytest.raises(Refusing):
        checking.run(threading.Event())
    reading = FaustRunner(Echo(), connection, publish=sent, open_reader=lambda: refuse(), status=RunnerStatus(ROLE))  # type: ignore[arg-type,return-value]  # it raises
    with pytest.raises(Refusing):
        reading.run(threading.Event())
    with running(Echo(), bus, tmp_path) as status:
        until(lambda: status.dead_letters_total == 1)


def test_a_coordinator_that_ended_for_good_ends_the_role(bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a defect in the assignor")

    monkeypatch.setattr("faust.assignor.partition_assignor.PartitionAssignor.on_assignment", fail)
    made, publisher = runner(Echo(), bus, tmp_path, RunnerStatus(ROLE), threading.Event())
    with pytest.raises(RuntimeError, match=r"site-xpulse\.echo.*a defect in the assignor"):
        made.run(threading.Event())
    publisher.close(1.0)


def test_killed_in_the_middle_nothing_is_lost(bus: Bus, tmp_path: Path) -> None:
    send(bus, numbers(400))
    command = [sys.executable, "-m", "tests.integration.streams.echo", bus.brokers, str(tmp_path), "--embedded", "--prefix", PREFIX]
    first = subprocess.Popen([*command, "--work-seconds", "0.01"])
    try:
        until(lambda: len(read(bus, topics.USAGE)) > 100, 60)
    finally:
        first.kill()
        first.wait()
    assert len(read(bus, topics.USAGE)) < 400
    echo = Echo()
    with running(echo, bus, tmp_path) as status:
        until(lambda: status.ready and status.lag == 0, 60)
    arrived = [r.value for r in read(bus, topics.USAGE)]
    assert set(arrived) == set(numbers(400))
    assert 0 < len(echo.seen) < 400
