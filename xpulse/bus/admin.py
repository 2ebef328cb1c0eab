"""Makes our topics on a Kafka, verifies those that exist, and says which rights each role needs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from schemas.topics import TOPICS, Topic, settings
from xpulse.bus.settings import librdkafka_config
from xpulse.errors import ProblemFound, UsageError

if TYPE_CHECKING:
    from xpulse.bus.settings import Bus

_SECONDS: Final = 30.0


@dataclass(slots=True)
class TopicReport:
    """What `topics create` did or would do. `problems` are differences that it does not change by itself, each with its remedy."""

    created: list[str] = field(default_factory=list)
    verified: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    acls: list[str] = field(default_factory=list)


def create_topics(bus: Bus, *, dry_run: bool = False) -> TopicReport:
    """Create what is missing and verify what exists; with `dry_run` nothing is changed and no broker is asked.

    Raises UsageError on the embedded bus, ProblemFound where the broker cannot be reached or refuses.
    """
    if bus.embedded:
        raise UsageError(
            "the embedded bus makes its topics itself when `xpulse up` starts it; topics create is for a real Kafka (bus.brokers)"
        )
    report = TopicReport(commands=commands(bus), acls=acls(bus))
    if dry_run:
        return report
    client = AdminClient(librdkafka_config(bus))
    try:
        there = client.list_topics(timeout=_SECONDS).topics
        missing = [row for row in TOPICS if bus.wire(row.name) not in there]
        report.created = _create(client, bus, missing)
        existing = [row for row in TOPICS if bus.wire(row.name) in there]
        for row in existing:
            report.problems += _partition_problems(bus, row, len(there[bus.wire(row.name)].partitions))
        report.problems += _setting_problems(client, bus, existing)
        report.verified = [bus.wire(row.name) for row in existing]
    except KafkaException as error:
        raise ProblemFound(f"topics on {bus.brokers}: {_words(error)}") from None
    return report


def commands(bus: Bus) -> list[str]:
    """The kafka-topics lines that make every topic of ours."""
    found = []
    for row in TOPICS:
        name, brokers = shlex.quote(bus.wire(row.name)), shlex.quote(bus.brokers)
        options = " ".join(f"--config {shlex.quote(f'{key}={value}')}" for key, value in _wanted(bus, row).items())
        found.append(
            f"kafka-topics.sh --bootstrap-server {brokers} --create --if-not-exists --topic {name} "
            f"--partitions {bus.partitions_of(row.partitions)} --replication-factor {bus.replication_factor} {options}"
        )
    return found


def acls(bus: Bus) -> list[str]:
    """The kafka-acls lines for each role; the principal is `User:xpulse-<role>`."""
    found = []
    for role in sorted({name for row in TOPICS for name in (*row.writers, *row.readers)}):
        base = f"kafka-acls.sh --bootstrap-server {shlex.quote(bus.brokers)} --add --allow-principal User:xpulse-{role}"
        reads = [row for row in TOPICS if role in row.readers]
        writes = [row for row in TOPICS if role in row.writers]
        found += [f"{base} --operation Read --operation Describe --topic {shlex.quote(bus.wire(row.name))}" for row in reads]
        found += [f"{base} --operation Write --operation Describe --topic {shlex.quote(bus.wire(row.name))}" for row in writes]
        if reads:
            found.append(f"{base} --operation Read --group {shlex.quote(bus.group(role))}")
        if writes:
            found.append(f"{base} --operation IdempotentWrite --cluster")
    return found


def _wanted(bus: Bus, row: Topic) -> dict[str, str]:
    return settings(row, replication=bus.replication_factor, min_insync=bus.min_insync_replicas)


def _create(client: AdminClient, bus: Bus, rows: Sequence[Topic]) -> list[str]:
    if not rows:
        return []
    new = [
        NewTopic(bus.wire(row.name), bus.partitions_of(row.partitions), bus.replication_factor, config=_wanted(bus, row)) for row in rows
    ]
    created: list[str] = []
    futures: dict[str, Future[Any]] = client.create_topics(new, operation_timeout=_SECONDS, request_timeout=_SECONDS)
    for name, future in futures.items():
        try:
            future.result(_SECONDS)
            created.append(name)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue  # another one was quicker
            remedy = "; lower bus.replication_factor" if error.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR else ""
            raise ProblemFound(f"topic {name} could not be made: {_words(error)}{remedy}") from None
    return created


def _partition_problems(bus: Bus, row: Topic, found: int) -> list[str]:
    wanted = bus.partitions_of(row.partitions)
    if found == wanted:
        return []
    remedy = f"set bus.partitions: {found}" if row.partitions is None else "make it anew"
    return [f"{bus.wire(row.name)}: {found} partitions, {wanted} wanted; topics that are joined need equal counts: {remedy}"]


def _setting_problems(client: AdminClient, bus: Bus, rows: Sequence[Topic]) -> list[str]:
    if not rows:
        return []
    problems: list[str] = []
    resources = {ConfigResource(ResourceType.TOPIC, bus.wire(row.name)): row for row in rows}
    futures: dict[ConfigResource, Future[Any]] = client.describe_configs(list(resources), request_timeout=_SECONDS)
    for resource, future in futures.items():
        found = {name: entry.value for name, entry in future.result(_SECONDS).items()}
        row = resources[resource]
        for name, value in _wanted(bus, row).items():
            if found.get(name) != value:
                wire, brokers, change = bus.wire(row.name), shlex.quote(bus.brokers), shlex.quote(f"{name}={value}")
                alter = f"--alter --entity-type topics --entity-name {shlex.quote(wire)} --add-config {change}"
                remedy = f"change it with: kafka-configs.sh --bootstrap-server {brokers} {alter}"
                problems.append(f"{wire}: {name} is {found.get(name)}, {value} wanted; {remedy}")
    return problems


def _words(error: KafkaException) -> str:
    first = error.args[0]
    return str(first.str()) if isinstance(first, KafkaError) else str(error)
