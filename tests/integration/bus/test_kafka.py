"""What only a real Kafka shows: topics made and verified, a broker killed under a publisher, a killed role taking its partitions back."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid

import pytest

from schemas.codec import HEADERS
from schemas.flow import Out
from schemas.topics import SAMPLES, TOPICS, USAGE
from tests.conformance.bus.conftest import OnKafka
from tests.conformance.bus.processors import Relay
from tests.integration.servers.kafka import KafkaServer
from xpulse.bus.admin import acls, commands, create_topics
from xpulse.bus.producer import Publisher
from xpulse.bus.settings import Bus

pytestmark = pytest.mark.integration


def kafka_bus(server: KafkaServer, prefix: str) -> Bus:
    return Bus(
        brokers=server.bootstrap, topic_prefix=prefix, group_prefix=prefix, partitions=4, replication_factor=1, min_insync_replicas=1
    )


def test_topics_are_made_once_and_verified_after(kafka_server: KafkaServer) -> None:
    bus = kafka_bus(kafka_server, f"{uuid.uuid4().hex[:8]}.")
    dry = create_topics(bus, dry_run=True)
    assert (dry.created, len(dry.commands)) == ([], len(TOPICS))
    first = create_topics(bus)
    assert sorted(first.created) == sorted(bus.wire(row.name) for row in TOPICS)
    second = create_topics(bus)
    assert (second.created, second.problems, len(second.verified)) == ([], [], len(TOPICS))
    other = create_topics(bus.model_copy(update={"partitions": 12}))
    assert any(
        f"{bus.wire(SAMPLES)}: 4 partitions, 12 wanted" in problem and "set bus.partitions: 4" in problem for problem in other.problems
    )


def test_each_role_gets_no_more_rights_than_it_needs() -> None:
    bus = Bus(topic_prefix="p.", group_prefix="p.")
    lines = [line for line in acls(bus) if "User:xpulse-attribute " in line]
    assert any("--operation Read" in line and "--topic p.xpulse.samples" in line for line in lines)
    assert any("--operation Write" in line and "--topic p.xpulse.usage" in line for line in lines)
    assert any("--group p.xpulse.attribute" in line for line in lines)
    assert not any("xpulse.alerts" in line for line in lines)
    assert all("p.xpulse." in line for line in commands(bus))


def test_a_publisher_survives_a_killed_broker(own_kafka: KafkaServer) -> None:
    bus = kafka_bus(own_kafka, "")
    create_topics(bus)
    publisher = Publisher(bus, "g")
    publisher.publish([Out(SAMPLES, b"c/n", b"0000", HEADERS)])
    sent: list[int] = []

    def publish() -> None:
        for i in range(1, 400):
            publisher.publish([Out(SAMPLES, b"c/n", b"%04d" % i, HEADERS)])
            sent.append(i)

    thread = threading.Thread(target=publish)
    thread.start()
    while len(sent) < 50:
        time.sleep(0.01)
    own_kafka.kill()
    time.sleep(1)
    own_kafka.start()
    thread.join(60)
    assert not thread.is_alive()
    assert [r.value for r in OnKafka(bus).records(SAMPLES)] == [b"%04d" % i for i in range(400)]


def test_a_killed_role_takes_its_partitions_back_at_once(kafka_server: KafkaServer) -> None:
    prefix = f"{uuid.uuid4().hex[:8]}."
    bus = kafka_bus(kafka_server, prefix)
    create_topics(bus)
    on = OnKafka(bus)
    process = subprocess.Popen([sys.executable, "-m", "tests.conformance.bus.relay_process", bus.brokers, prefix, "kafka"])
    on.send(SAMPLES, b"c/n", b"one")
    deadline = time.monotonic() + 30
    while not on.records(USAGE) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.kill()
    process.wait()
    on.send(SAMPLES, b"c/n", b"two")
    started, relay = time.monotonic(), Relay()
    on.run(relay, lambda: any(r.value == b"two" for r in relay.seen))
    assert time.monotonic() - started < bus.session_timeout_seconds
    assert {r.value for r in on.records(USAGE)} == {b"one", b"two"}
