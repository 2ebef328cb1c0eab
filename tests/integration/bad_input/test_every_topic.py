"""Whatever comes on whichever topic: one dead letter for each group that reads it, nothing stops, and what is repaired comes back."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from forecasting.worker import ForecastProcessor
from schemas import topics
from schemas.flow import Headers, Record
from schemas.identity import device_entity, fingerprint
from schemas.telemetry import v1
from sinks.mirror import MirrorProcessor
from sinks.notify.processor import NotifyProcessor
from sinks.settings import Influx, Sinks
from sinks.store import INPUTS
from streams.processors.build import ROLES, build
from streams.settings import Streams
from tests.integration.bad_input.messages import BAD, CLUSTER, NULL, RULE, Bad, Good, good, newer_minor, node_of, uid
from tests.integration.stack import Stack, embedded_bus, kafka_bus
from xpulse.bus.dlq import KEPT_BYTES, Letter, read_letter
from xpulse.bus.producer import Publisher
from xpulse.bus.reader import BusReader
from xpulse.bus.tail import replay

if TYPE_CHECKING:
    from schemas.store import Store
    from tests.integration.servers.influxdb import InfluxServer
    from tests.integration.servers.kafka import KafkaServer

CONSUMED: Final[dict[str, tuple[str, ...]]] = {
    **{role: build(role, Streams()).inputs for role in ROLES},
    "sqlite": INPUTS,
    "notify": NotifyProcessor.inputs,
    "mirror": MirrorProcessor.inputs,
    "forecast": ForecastProcessor.inputs,
}
"""What each role reads, asked of the roles themselves."""

RESTORED_FROM: Final = (topics.ALERT_STATE, topics.INVENTORY)
"""Topics that are only read at a start: what is wrong there is passed over."""

NEWER, AFTER, BY_COMMAND, FIRST_SPOILT = 1, 2, 3, 100
"""Numbers of the messages that must be processed: of a later release, sent after the bad ones, repaired by hand, and behind the first
bad one."""

SHAPES: Final = (
    pytest.param(("embedded", "direct"), id="embedded bus, direct"),
    pytest.param(("embedded", "faust"), id="embedded bus, faust"),
    pytest.param(("kafka", "faust"), id="Kafka, faust", marks=pytest.mark.integration),
)


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A bad message as it was sent, and the good one it was made of."""

    bad: Bad
    good: Good
    key: bytes
    value: bytes | None
    headers: Headers

    def is_in(self, record: Record) -> bool:
        return (record.topic, record.key, record.value, record.headers) == (self.good.topic, self.key, self.value, self.headers)


class Line:
    """Every role that reads topics, after all the bad input and one good message behind it."""

    def __init__(self, stack: Stack, roles: dict[str, tuple[str, ...]], sinks: Sinks) -> None:
        self.stack, self.roles = stack, roles
        self.stores: dict[str, Store] = {"sqlite": stack.store()}
        if sinks.store != "sqlite":
            self.stores[sinks.store] = stack.store(sinks)
        self.topics = sorted({topic for inputs in roles.values() for topic in inputs})
        self.spoilt: list[Spoilt] = []
        self.sent: Counter[str] = Counter()
        self._at_ns = time.time_ns()
        for topic in RESTORED_FROM:
            self._send_bad(topic)
        for role in roles:
            stack.start(*("stream", role) if role in ROLES else ("forecast",) if role == "forecast" else ("sink", role))
        stack.ready()
        for topic in self.topics:
            self._send_bad(topic)
            newer, after = self.good(topic, NEWER), self.good(topic, AFTER)
            self._send(topic, after.key, *newer_minor(newer))
            stack.send(topic, after.key, after.value)
            self.sent[topic] += 1
        self.until_read()

    def good(self, topic: str, number: int) -> Good:
        """The same number is the same message."""
        return good(topic, number, self._at_ns + number)

    def until_read(self) -> None:
        """Wait until every role has read all that was sent to it."""
        for role in self.stack.roles:
            wanted = sum(self.sent[topic] for topic in self.roles[role.name])

            def all_read(role=role, wanted=wanted) -> bool:  # type: ignore[no-untyped-def]  # defaults bind the loop's values
                status = role.status()
                return status is not None and status.processed_total >= wanted and status.lag == 0

            self.stack.until(all_read, f"{role.name} has read {wanted} records")

    def letters(self) -> list[Letter]:
        return [read_letter(record) for record in self.stack.records(topics.DLQ)]

    def where(self) -> dict[tuple[str, int, int], Spoilt]:
        """Each bad message by topic, partition and offset."""
        found = {}
        for topic in self.topics:
            spoilt = [s for s in self.spoilt if s.good.topic == topic]
            for record in self.stack.records(topic):
                if (hit := next((s for s in spoilt if s.is_in(record)), None)) is not None:
                    found[(topic, record.partition, record.offset)] = hit
        return found

    def _send_bad(self, topic: str) -> None:
        kinds = BAD if topic in RESTORED_FROM else (*BAD, NULL)
        for i, bad in enumerate(kinds):
            base = self.good(topic, FIRST_SPOILT + i)
            key = self.good(topic, AFTER).key  # so that all of them lie before that good one, in its partition
            value, headers = bad.spoil(base)
            self._send(topic, key, value, headers)
            if topic in self.topics:
                self.spoilt.append(Spoilt(bad, base, key, value, headers))

    def _send(self, topic: str, key: bytes, value: bytes | None, headers: Headers) -> None:
        self.stack.send(topic, key, value, headers)
        self.sent[topic] += 1


@pytest.fixture(scope="module", params=SHAPES)
def line(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    where, runner = request.param
    folder: Path = tmp_path_factory.mktemp("line")
    environment = {"XPULSE_STREAMS__RUNNER": runner, "XPULSE_STREAMS__ATTRIBUTE__WAIT_SECONDS": "1"}
    if where == "embedded":
        with embedded_bus() as bus, Stack(bus, folder, environment) as stack:
            yield Line(stack, CONSUMED, Sinks())
        return
    kafka: KafkaServer = request.getfixturevalue("kafka_server")
    influx: InfluxServer = request.getfixturevalue("influx_server")
    bus = kafka_bus(kafka)
    token = folder / "token"
    token.write_text(influx.token)
    target = Influx(url=influx.url, org=influx.org, bucket=bus.topic_prefix + "bad", token_file=token)
    environment |= {
        "XPULSE_SINKS__INFLUXDB__URL": target.url,
        "XPULSE_SINKS__INFLUXDB__ORG": target.org,
        "XPULSE_SINKS__INFLUXDB__BUCKET": target.bucket,
        "XPULSE_SINKS__INFLUXDB__TOKEN_FILE": str(token),
    }
    with Stack(bus, folder, environment) as stack:
        stack.run("sink", "influxdb", "--setup", "--admin-token-file", str(token), "--write-token", str(folder / "unused"))
        yield Line(stack, CONSUMED | {"influxdb": INPUTS}, Sinks(store="influxdb", influxdb=target))


def test_each_bad_message_is_one_dead_letter_of_each_group_that_reads_it(line: Line) -> None:
    where = line.where()
    assert len(where) == len(line.spoilt), "a bad message did not arrive as it was sent"
    wanted: Counter[tuple[str, str, int, int, str]] = Counter()
    for (topic, partition, offset), spoilt in where.items():
        if spoilt.bad is NULL and topics.topic(topic).compacted:
            continue  # a deletion
        for role, inputs in line.roles.items():
            if topic in inputs:
                wanted[(line.stack.bus.group(role), topic, partition, offset, spoilt.bad.name)] += 1
    found: Counter[tuple[str, str, int, int, str]] = Counter()
    for letter in line.letters():
        if letter.attempt > 1:
            continue  # another test's
        spoilt = where[(letter.topic, letter.source_partition, letter.source_offset)]
        found[(letter.group, letter.topic, letter.source_partition, letter.source_offset, spoilt.bad.name)] += 1
        assert spoilt.bad.reason in letter.reason, f"{spoilt.bad.name} on {letter.topic}: {letter.reason!r}"
        assert letter.value == (spoilt.value or b"")[:KEPT_BYTES]
        assert letter.size_bytes == (None if spoilt.value is None else len(spoilt.value))
        assert letter.key == spoilt.key
        assert letter.headers == spoilt.headers
    assert found == wanted


def test_nothing_stopped(line: Line) -> None:
    for role in line.stack.roles:
        status = role.status()
        assert role.alive
        assert status is not None
        assert status.ready, f"{role.name}: {status.why_not}"


@pytest.mark.parametrize("number", [NEWER, AFTER], ids=["of a later release", "after the bad ones"])
def test_good_messages_are_processed(line: Line, number: int) -> None:
    assert_processed(line, [number])


def test_what_is_repaired_comes_back_and_is_processed(line: Line) -> None:
    before = line.letters()
    first: dict[tuple[str, int, int], Letter] = {}
    for letter in before:
        if letter.attempt == 1:
            first.setdefault((letter.topic, letter.source_partition, letter.source_offset), letter)
    where = line.where()
    publisher = Publisher(line.stack.bus, "tests")
    try:
        with BusReader(line.stack.bus) as reader:
            for place, letter in first.items():
                spoilt, at = where[place], [(letter.partition, letter.offset)]
                only_headers = spoilt.bad.name in ("unknown major", "missing header", "unreadable version")
                if spoilt.bad.name == "two megabytes":
                    (refused,) = replay(reader, publisher.publish, at)
                    assert f"holds {KEPT_BYTES} of {letter.size_bytes} bytes" in refused
                if spoilt.bad is NULL:
                    (refused,) = replay(reader, publisher.publish, at)
                    assert "null value" in refused
                repaired = None if only_headers else spoilt.good.value
                assert replay(reader, publisher.publish, at, value=repaired, set_headers={"schema-version": "1.0"}) == []
                line.sent[letter.topic] += 1
    finally:
        publisher.close()
    line.until_read()
    numbers = sorted({where[place].good.number for place in first})
    assert len(numbers) == len(BAD) + 1
    assert_processed(line, numbers, all_of={(where[place].good.topic, where[place].good.number) for place in first})
    assert [letter for letter in line.letters() if letter not in before] == [], "a repaired message went to the dead letters again"


def test_the_command_line_lists_them_and_sends_them_back(line: Line) -> None:
    topic, stack = topics.DEVICE_EVENTS, line.stack
    readers = {stack.bus.group(role) for role, inputs in line.roles.items() if topic in inputs}
    listed = stack.run("dlq", "list", "--topic", topic, "--group", stack.bus.group("detect")).splitlines()
    rows = [row for row in listed if f"{topic} " in row]
    assert len(rows) == len(BAD) + 1
    assert listed[-1] == f"{len(rows)} dead letters"
    place = {bad.name: next(row.split()[0] for row in rows if bad.reason in row) for bad in BAD}

    # as it is: the next attempt, again one for each group
    assert "1 of 1 sent back" in stack.run("dlq", "replay", place["malformed bytes"])
    stack.until(lambda: len([x for x in line.letters() if x.attempt == 2]) >= len(readers), "the dead letters of the second attempt")
    line.until_read()
    second = [x for x in line.letters() if x.attempt == 2]
    assert sorted(x.group for x in second) == sorted(readers)
    assert {(x.topic, x.value, "malformed" in x.reason) for x in second} == {(topic, b"\xff" * 12, True)}

    # repaired
    refused = stack.run("dlq", "replay", place["two megabytes"], code=1)
    assert f"holds {KEPT_BYTES} of" in refused
    assert "0 of 1 sent back" in refused
    file = stack.state / "repaired"
    file.write_bytes(line.good(topic, BY_COMMAND).value)
    assert "1 of 1 sent back" in stack.run("dlq", "replay", place["two megabytes"], "--value", str(file))
    assert_processed(line, [BY_COMMAND], all_of={(topic, BY_COMMAND)})
    assert "1 of 1 sent back" in stack.run("dlq", "replay", place["unknown major"], "--set-header", "schema-version=1.0")
    spoilt = next(s for s in line.spoilt if s.good.topic == topic and s.bad.name == "unknown major")
    assert_processed(line, [spoilt.good.number], all_of={(topic, spoilt.good.number)})


def test_what_a_start_could_not_read_is_counted(line: Line) -> None:
    """Nobody consumes these topics: they are read to their end at each start, so there is no offset that a dead letter could stand for."""
    for name, topic in (("alert", topics.ALERT_STATE), ("detect", topics.ALERT_STATE), ("sqlite", topics.INVENTORY)):
        role = next(r for r in line.stack.roles if r.name == name)
        found = re.search(r'xpulse_dropped_total{reason="state_unreadable"} (\d+)', role.metrics())
        assert found, f"{name} says nothing of what it could not read on {topic}"
        assert int(found[1]) >= len(BAD)


def assert_processed(line: Line, numbers: list[int], *, all_of: set[tuple[str, int]] | None = None) -> None:
    """Each role has made of the messages with these numbers what it is there for. `all_of` names the (topic, number) that were sent."""

    def sent(topic: str) -> set[int]:
        return {number for number in numbers if all_of is None or (topic, number) in all_of}

    stack = line.stack

    def joined() -> set[int]:
        found = [m for m in stack.messages(topics.USAGE) if isinstance(m, v1.AttributedBatch)]
        return {m.sequence for m in found if m.node == node_of(topics.SAMPLES)}

    stack.until(lambda: sent(topics.SAMPLES) <= joined(), f"attribute joined the samples {numbers}")
    wanted_alerts = {fingerprint(RULE, CLUSTER, device_entity(uid(n))) for n in sent(topics.FINDINGS)}
    wanted_findings = {("xid_critical", device_entity(uid(n))) for n in sent(topics.DEVICE_EVENTS)}
    stack.until(
        lambda: wanted_findings <= {(m.rule, m.entity) for m in stack.messages(topics.FINDINGS) if isinstance(m, v1.Finding)},
        f"detect made findings of the device events {numbers}",
    )
    stack.until(
        lambda: wanted_alerts <= {m.fingerprint for m in stack.messages(topics.ALERTS) if isinstance(m, v1.Alert)},
        f"alert made alerts of the findings {numbers}",
    )
    by_hand = {fingerprint("by_hand", CLUSTER, device_entity(uid(n))).encode() for n in sent(topics.ALERTS)}
    stack.until(lambda: by_hand <= {r.key for r in stack.records(topics.ALERTS_JSON)}, f"mirror repeated the alerts {numbers}")
    notify = next(role for role in stack.roles if role.name == "notify")
    stack.until(lambda: all(f"card {n} by hand" in notify.text() for n in sent(topics.ALERTS)), f"notify told of the alerts {numbers}")
    for name, store in line.stores.items():
        for topic, look in STORED.items():
            if topic in CONSUMED["sqlite"]:
                stack.until(lambda store=store, look=look, topic=topic: sent(topic) <= look(store), f"{name} holds {numbers} of {topic}")  # type: ignore[misc]  # defaults bind the loop's values


def _numbers(store: Store, measurement: str, node: str, tag: str) -> set[int]:
    found = store.series(measurement, where={"node": node})  # type: ignore[arg-type]  # a Measurement, from the table below
    return {int(dict(tags)[tag].rpartition("-")[2]) for tags in found if tags}


def _events(store: Store, node: str) -> set[int]:
    found = store.events(start_ns=0, end_ns=time.time_ns() + 10**12, where={"node": node})
    return {int(str(dict(e.tags)["uid"]).rpartition("-")[2]) for e in found}


STORED: Final = {
    topics.SAMPLES: lambda store: _numbers(store, "device", node_of(topics.SAMPLES), "uid"),
    topics.USAGE: lambda store: _numbers(store, "usage", node_of(topics.USAGE), "uid"),
    topics.INFERENCE: lambda store: _numbers(store, "service", node_of(topics.INFERENCE), "pod"),
    topics.FINDINGS: lambda store: _numbers(store, "finding", node_of(topics.FINDINGS), "entity"),
    topics.ALERTS: lambda store: _numbers(store, "alert", node_of(topics.ALERTS), "entity"),
    topics.FORECASTS: lambda store: _numbers(store, "forecast", node_of(topics.FORECASTS), "entity"),
    topics.DEVICE_EVENTS: lambda store: _events(store, node_of(topics.DEVICE_EVENTS)),
    topics.CONTEXT_EVENTS: lambda store: _events(store, node_of(topics.CONTEXT_EVENTS)),
    topics.ALLOCATION_CHANGES: lambda store: {
        int(i.id[1:])
        for i in store.intervals(start_ns=0, end_ns=time.time_ns() + 10**12, where={"node": node_of(topics.ALLOCATION_CHANGES)})
    },
}
"""For each topic that is stored: which numbers a store holds."""
