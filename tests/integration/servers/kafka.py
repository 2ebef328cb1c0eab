"""A real Apache Kafka: one KRaft node, from the Maven jars, on loopback."""

from __future__ import annotations

import base64
import logging
import os
import socket
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from tests.integration.servers import cache, toolchain
from tests.integration.servers.ports import free_ports
from tests.integration.servers.progress import Progress
from tests.integration.servers.server import NotReady, Server, StartFailed
from tests.integration.servers.toolchain import Missing

VERSION = "4.3.1"
RECIPE = cache.Recipe("kafka", VERSION, revision=2)
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    # Without a binding Kafka's log calls go nowhere; this one is for the slf4j 1.7 which it brings.
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
CLASSES = "classes.jsa"
"""Java's archive of parsed classes: it halves the start. A Java that cannot use it starts without."""

JAVA = (
    "java",
    *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"),
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
)


class KafkaServer(Server):
    """One broker with its controller; `overrides` are server properties of a test's own."""

    name = "kafka"

    def __init__(self, overrides: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._overrides = dict(overrides or {})
        self._port, self._controller_port = free_ports(2)

    @property
    def bootstrap(self) -> str:
        """The address for clients, `127.0.0.1:port`."""
        return f"127.0.0.1:{self._port}"

    def _prepare(self, progress: Progress) -> Path:
        return prepare(progress)

    def _lay_out(self, build: Path) -> None:
        properties = server_properties(self._port, self._controller_port, self.folder / "data") | self._overrides
        (self.folder / "server.properties").write_text(render(properties), encoding="utf-8")
        options = ["--standalone", "-t", cluster_id(), "-c", str(self.folder / "server.properties")]
        command = _java(f"-XX:SharedArchiveFile={CLASSES}", "kafka.tools.StorageTool", "format", *options)
        with self.log.open("ab") as log:
            code = subprocess.run(command, cwd=build, stdout=log, stderr=log, check=False).returncode
        if code != 0:
            raise StartFailed(f"formatting Kafka's storage ended with {code}:\n{toolchain.tail(self.log)}")

    def _command(self, build: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        return self._broker(f"-XX:SharedArchiveFile={CLASSES}"), os.environ

    def _broker(self, *flags: str) -> list[str]:
        return _java(*flags, "kafka.Kafka", str(self.folder / "server.properties"))

    def _check_ready(self) -> None:
        self._check_port()
        _produce_once(self.bootstrap)

    def _check_port(self) -> None:
        try:
            socket.create_connection(("127.0.0.1", self._port), 1.0).close()
        except OSError as error:
            raise NotReady(f"port {self._port}: {error}") from None


class _Rehearsal(KafkaServer):
    """The start, once, from which Java makes its archive of classes when the server is stopped."""

    def __init__(self, build: Path) -> None:
        super().__init__()
        self._build = build

    def _prepare(self, progress: Progress) -> Path:
        return self._build

    def _command(self, build: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        return self._broker(f"-XX:ArchiveClassesAtExit={CLASSES}"), os.environ

    def _check_ready(self) -> None:
        self._check_port()


def prepare(progress: Progress) -> Path:
    """The cached folder with Kafka's jars in `lib`, fetched by Maven where it is not there yet.

    Java is run in it: the archive of classes holds for the class path word for word, so that is a relative one.
    """

    def build(folder: Path) -> None:
        toolchain.require("kafka", {"mvn": ["maven"]}, progress)
        (folder / "pom.xml").write_text(pom(ARTIFACTS), encoding="utf-8")
        goal = ["dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]
        toolchain.run(
            "kafka",
            ["mvn", "-q", "-B", *goal],
            cwd=folder,
            log=folder / cache.BUILD_LOG,
            progress=progress,
            step=f"fetching the jars of {VERSION}",
        )
        progress.line("rehearsing the start, for Java's archive of classes")
        with _Rehearsal(folder) as rehearsal:
            rehearsal.stop()

    toolchain.require("kafka", {"java": ["openjdk-17-jre-headless"]}, progress)
    return cache.obtain(RECIPE, build, on_wait=lambda: progress.line("another process is building it: waiting"))


def server_properties(port: int, controller_port: int, data: Path) -> dict[str, str]:
    """The settings of one combined broker and controller whose internal topics have one replica.

    A killed broker is let in again only when its old session is over: four seconds instead of nine.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "1000",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }


def render(properties: Mapping[str, str]) -> str:
    """Java's properties format; a backslash would start an escape and is doubled."""
    return "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in properties.items())


def pom(artifacts: Sequence[tuple[str, str, str]]) -> str:
    """The smallest Maven project that depends on these (group, artifact, version)."""
    dependencies = "".join(
        f"<dependency><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version)}</version></dependency>"
        for group, artifact, version in artifacts
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>xpulse</groupId><artifactId>test-kafka</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>\n"
    )


def cluster_id() -> str:
    """A new cluster id as Kafka writes them: a UUID in 22 characters of URL-safe base64, not beginning with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):  # the storage tool would read an option
            return text


def _java(*arguments: str) -> list[str]:
    return [*JAVA, "-cp", "lib/*", *arguments]


def _produce_once(bootstrap: str) -> None:
    """Make a topic, produce one message to it and delete it: what an idempotent producer needs then works."""
    try:
        from confluent_kafka import KafkaError, KafkaException, Message, Producer
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic
    except ImportError:
        raise Missing("kafka", "confluent-kafka is not installed", "install the project's environment") from None

    topic = f"ready.{uuid.uuid4().hex}"
    refused: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        refused.append(error)

    try:
        admin = AdminClient({"bootstrap.servers": bootstrap}, logger=_silent())
        admin.list_topics(timeout=5)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "message.timeout.ms": 10_000},
            logger=_silent(),
        )
        producer.produce(topic, b"ready", on_delivery=delivered)
        producer.flush(10)
        admin.delete_topics([topic])[topic].result(10)
    except KafkaException as error:
        raise NotReady(str(error)) from None
    if refused != [None]:
        raise NotReady(f"produce: {refused or 'no delivery report'}")


def _silent() -> logging.Logger:
    """A logger for librdkafka's remarks about a broker that is still starting."""
    logger = logging.getLogger(f"{__name__}.probe")
    logger.setLevel(logging.CRITICAL)
    return logger
