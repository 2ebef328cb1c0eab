"""What the detect tests are given: rules from small mappings, batches and records with event time in whole seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import Message

from schemas import topics
from schemas.codec import encode
from schemas.flow import Partition, Record
from schemas.identity import node_key, partition_of
from schemas.telemetry import v1
from streams.operators.detect import Detectors, Times, samples
from streams.operators.detect.columns import Taken
from streams.operators.detect.samples import Samples
from streams.rules import Rule
from streams.rules.load import parse_rules

SECOND = 1_000_000_000
EPOCH = 1_700_000_000 * SECOND
GIB = 2**30
DETECTORS = Detectors()
TIMES = Times()


def at(seconds: float) -> int:
    return EPOCH + round(seconds * SECOND)


def rule(when: Mapping[str, Any], name: str = "odd", **more: Any) -> Rule:
    return parse_rules({"rules": [{"name": name, "meaning": "It is odd.", "summary": "{value}", "when": dict(when), **more}]}, "test")[0]


def state(*rules: Rule) -> Samples:
    return samples.start(rules, DETECTORS, TIMES)


def sample(uid: str, absent: Mapping[str, int] | None = None, **values: Any) -> v1.DeviceSample:
    made = v1.DeviceSample(uid=uid, info=values.pop("info", None))
    for name, value in values.items():
        setattr(made, name, value)
    for reason in (absent or {}).items():
        made.absences.add(reason=reason[1], field_number=[v1.DeviceSample.DESCRIPTOR.fields_by_name[reason[0]].number])
    return made


def batch(
    seconds: float, *devices: v1.DeviceSample, node: str = "n1", cluster: str = "c1", sequence: int | None = None, **more: Any
) -> v1.SampleBatch:
    given: dict[str, Any] = {"source": "nvidia", "agent_epoch": 1, "boot_id": "boot-1"} | more
    number = round(seconds * 1000) if sequence is None else sequence
    return v1.SampleBatch(cluster=cluster, node=node, sequence=number, taken_at_ns=at(seconds), devices=devices, **given)


def run(given: Samples, *batches: v1.SampleBatch) -> list[v1.Finding]:
    return samples.step(given, [Taken(b) for b in batches])[1]


def said(found: list[v1.Finding]) -> list[tuple[float, str, bool]]:
    """(second, rule, active) of each finding."""
    return [((f.observed_at_ns - EPOCH) / SECOND, f.rule, f.active) for f in found]


def record(topic: str, message: Message, seconds: float, *, key: bytes | None = None, partition: int | None = None) -> Record:
    """The message as the bus would give it: keyed by cluster/node, in the partition of its key among four."""
    if key is None:
        key = node_key(message.cluster, message.node)  # type: ignore[attr-defined]  # every message of these topics has both
    out = encode(topic, key, message)
    return Record(topic, partition_of(key, 4) if partition is None else partition, 0, key, out.value, out.headers, at(seconds))


class MemoryReader:
    """A Reader over records held in memory; every topic has four partitions but those with one."""

    def __init__(self, *records: Record) -> None:
        self.records = list(records)

    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
        for r in self.records:
            if r.topic == topic and r.partition == partition and (since_ns is None or r.timestamp_ns >= since_ns):
                yield r

    def partitions(self, topic: str) -> int:
        return topics.topic(topic).partitions or 4


ALL = frozenset(Partition(t, p) for t in (topics.SAMPLES, topics.USAGE, topics.FORECASTS) for p in range(4))
