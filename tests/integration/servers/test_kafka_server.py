"""The real Kafka keeps what it acknowledged, however it ends."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.servers.kafka import KafkaServer

confluent_kafka = pytest.importorskip("confluent_kafka")

pytestmark = pytest.mark.integration


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **group})
    consumer.subscribe([topic])
    try:
        return [message.value() for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def create(bootstrap: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)


@pytest.mark.slow
def test_data_and_port_survive_kill_and_restart(own_kafka: KafkaServer) -> None:
    bootstrap, first_pid = own_kafka.bootstrap, own_kafka.pid
    create(bootstrap, "kept")
    produce(bootstrap, "kept", [b"one", b"two"])

    own_kafka.kill()
    assert not own_kafka.running
    own_kafka.start()
    assert consume(bootstrap, "kept", 2) == [b"one", b"two"]

    produce(bootstrap, "kept", [b"three"])
    own_kafka.restart()
    assert own_kafka.bootstrap == bootstrap
    assert own_kafka.pid != first_pid
    assert consume(bootstrap, "kept", 3) == [b"one", b"two", b"three"]


def test_a_fresh_broker_shows_no_topic_of_ours(own_kafka: KafkaServer) -> None:
    from confluent_kafka.admin import AdminClient

    topics = AdminClient({"bootstrap.servers": own_kafka.bootstrap}).list_topics(timeout=10).topics
    assert [name for name in topics if not name.startswith("__")] == []


def test_close_removes_the_folder(own_kafka: KafkaServer) -> None:
    folder = own_kafka.folder
    own_kafka.close()
    assert not folder.exists()
    assert not own_kafka.running
