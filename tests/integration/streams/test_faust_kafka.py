"""The Faust app on a real Kafka: static membership, rebuild by time, kill -9 of the worker and of the broker."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stub hides what it exports

from schemas import topics
from schemas.flow import Record
from schemas.status import RunnerStatus
from tests.integration.servers.kafka import KafkaServer
from tests.integration.streams.echo import ROLE, Echo, runner
from tests.integration.streams.test_faust_app import numbers, running, send, until
from xpulse.bus.reader import BusReader
from xpulse.bus.settings import Bus

pytestmark = pytest.mark.integration
PARTITIONS = 4


def bus_on(server: KafkaServer) -> Bus:
    bus = Bus(brokers=server.bootstrap, topic_prefix=f"{uuid.uuid4().hex}-", session_timeout_seconds=10)
    bus = bus.model_copy(update={"group_prefix": bus.topic_prefix})
    names = [topics.SAMPLES, topics.ALLOCATIONS, topics.USAGE, topics.DLQ]
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    made = admin.create_topics([NewTopic(bus.wire(n), PARTITIONS, 1) for n in names])
    for each in made.values():
        each.result(20)
    return bus


@pytest.fixture
def bus(kafka_server: KafkaServer) -> Bus:
    return bus_on(kafka_server)


def read(bus: Bus, topic: str) -> list[Record]:
    with BusReader(bus) as reader:
        return [record for partition in range(PARTITIONS) for record in reader.read(topic, partition)]


def test_killed_and_started_again_it_loses_nothing_and_does_not_wait_for_its_old_self(bus: Bus, tmp_path: Path) -> None:
    send(bus, numbers(400))
    command = [sys.executable, "-m", "tests.integration.streams.echo", bus.brokers, str(tmp_path), "--prefix", bus.topic_prefix]
    first = subprocess.Popen([*command, "--work-seconds", "0.01"])
    try:
        until(lambda: len(read(bus, topics.USAGE)) > 100, 60)
    finally:
        first.kill()
        first.wait()
    echo = Echo()
    killed = time.monotonic()
    with running(echo, bus, tmp_path) as status:
        until(lambda: bool(echo.restored), 30)
        assert time.monotonic() - killed < 8.0, "it waited for the session of its old self to end"
        until(lambda: status.ready and status.lag == 0)
    assert {r.value for r in read(bus, topics.USAGE)} == set(numbers(400))


def test_a_rebuild_goes_back_by_time(bus: Bus, tmp_path: Path) -> None:
    send(bus, numbers(10), keys=1)
    time.sleep(3)
    send(bus, numbers(5), keys=1)
    with running(Echo(), bus, tmp_path) as status:
        until(lambda: status.processed_total == 15)
    send(bus, [b"after"], keys=1)
    with running(Echo(rewind_seconds=2.0), bus, tmp_path) as status:
        until(lambda: status.processed_total == 1)
        assert status.rebuilt_total <= 5
    with running(Echo(rewind_seconds=600), bus, tmp_path) as status:
        until(lambda: status.rebuilt_total == 16)


def test_it_waits_for_a_killed_broker(own_kafka: KafkaServer, tmp_path: Path) -> None:
    bus = bus_on(own_kafka)
    send(bus, numbers(200))
    echo, status, stop = Echo(work_seconds=0.01), RunnerStatus(ROLE), threading.Event()
    made, publisher = runner(echo, bus, tmp_path, status, stop)
    thread = threading.Thread(target=made.run, args=(stop,))
    thread.start()
    try:
        until(lambda: status.published_total > 50)
        own_kafka.kill()
        own_kafka.restart()
        send(bus, [b"after"])
        until(lambda: {r.value for r in read(bus, topics.USAGE)} == {*numbers(200), b"after"}, 90)
    finally:
        stop.set()
        thread.join(15)
        publisher.close(1.0)
    assert not thread.is_alive()
    assert made.driver.failure is None
