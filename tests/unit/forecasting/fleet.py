"""A little fleet in event time: builds the records an agent would publish, and drives a processor through seconds without sleeping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forecasting.pool import Inline, Pool
from forecasting.settings import Forecasting, demo_profile
from forecasting.worker import ForecastProcessor
from schemas import topics
from schemas.catalogue import BY_NAME
from schemas.codec import decode, encode
from schemas.flow import Out, Partition, Record, Tick
from schemas.identity import node_key
from schemas.telemetry import v1

SECOND = 1_000_000_000
START_NS = 1_790_000_000 * SECOND
GB = 1e9
TOTAL = 80 * GB
PARTITIONS = 4


def batch(
    at_ns: int,
    devices: Mapping[str, Mapping[str, float]],
    *,
    sequence: int = 0,
    epoch: int = 1,
    node: str = "n0",
    cluster: str = "c0",
    interval_ns: int = SECOND,
    limits: Mapping[str, float | None] | None = None,
    boot_id: str = "b",
) -> v1.SampleBatch:
    """One node's batch; a metric that is not named was not due. Every 60th sequence, and each with a slow metric, carries the limits, as
    full samples do; one that is None is not told."""
    full = sequence % 60 == 0 or any(BY_NAME[name].cadence == "slow" for values in devices.values() for name in values)
    samples = []
    for index, (uid, values) in enumerate(devices.items()):
        typed = {name: int(value) if BY_NAME[name].wire.startswith("uint") else value for name, value in values.items()}
        sample = v1.DeviceSample(uid=uid, index=index, full=full, **typed)  # type: ignore[arg-type]  # the names are the tests' own
        if full:
            for name, value in {"memory_total_bytes": int(TOTAL), "temperature_slowdown_celsius": 87.0, **(limits or {})}.items():
                if value is not None:
                    setattr(sample, name, value)
        samples.append(sample)
    return v1.SampleBatch(
        cluster=cluster,
        node=node,
        source="simulated",
        agent_epoch=epoch,
        sequence=sequence,
        taken_at_ns=at_ns,
        sent_at_ns=at_ns,
        interval_ns=interval_ns,
        boot_id=boot_id,
        devices=samples,
        simulated=True,
    )


def window(at_ns: int, *, pod: str = "chat-1", node: str = "n0", **said: float) -> v1.InferenceWindow:
    """What one instance of the service prod/chat did in the ten seconds up to `at_ns`."""
    found = v1.InferenceWindow(cluster="c0", node=node, started_at_ns=at_ns - 10 * SECOND, ended_at_ns=at_ns, simulated=True, **said)  # type: ignore[arg-type]  # the names are the tests' own
    found.workload.CopyFrom(v1.Workload(namespace="prod", service="chat", pod=pod))
    return found


def record(message: v1.SampleBatch | v1.InferenceWindow, *, offset: int = 0) -> Record:
    topic, at_ns = topics.SAMPLES, 0
    if isinstance(message, v1.InferenceWindow):
        topic, at_ns = topics.INFERENCE, message.ended_at_ns
    else:
        at_ns = message.taken_at_ns
    out = encode(topic, node_key(message.cluster, message.node), message)
    return Record(out.topic, 0, offset, out.key, out.value, out.headers, at_ns)


@dataclass
class Topic:
    """A Reader over what was published."""

    records: list[Record] = field(default_factory=list)

    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
        if partition == 0:
            yield from (r for r in self.records if r.topic == topic and (since_ns is None or r.timestamp_ns >= since_ns))

    def partitions(self, topic: str) -> int:
        return PARTITIONS

    def keep(self, outs: Sequence[Out], at_ns: int) -> None:
        for out in outs:
            self.records.append(Record(out.topic, 0, len(self.records), out.key, out.value, out.headers, at_ns))


ALL = frozenset(Partition(topics.SAMPLES, p) for p in range(PARTITIONS))


@dataclass(frozen=True)
class Said:
    """A forecast as published, and when (seconds after the start)."""

    at_seconds: float
    forecast: v1.Forecast

    @property
    def breach(self) -> bool:
        return not self.forecast.withdrawn and self.forecast.breach_probability_ratio >= 0.5


@dataclass
class Run:
    """Drives one processor; `said` is all it published."""

    settings: Forecasting = field(default_factory=demo_profile)
    pool: Pool = field(default_factory=Inline)
    topic: Topic = field(default_factory=Topic)
    said: list[Said] = field(default_factory=list)
    second: int = 0
    limits: dict[str, float | None] = field(default_factory=dict)
    boot_id: str = "b"
    processor: ForecastProcessor = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """As after a crash: nothing but the bus is remembered."""
        self.processor = ForecastProcessor(self.settings, clock_ns=lambda: START_NS + self.second * SECOND, pool=self.pool)
        self.processor.restore(self.topic, ALL)

    def feed(self, series: Mapping[str, Mapping[str, NDArray[np.float64]]], *, step_seconds: int = 1) -> None:
        """Feed arrays, {uid: {metric: values}}, one value per step; NaN means the device was not in the batch that often."""
        length = max(len(values) for metrics in series.values() for values in metrics.values())
        for i in range(length):
            at_ns = START_NS + self.second * SECOND
            now = {uid: {name: float(v[i]) for name, v in metrics.items() if np.isfinite(v[i])} for uid, metrics in series.items()}
            present = {uid: values for uid, values in now.items() if values}
            sequence, interval_ns = self.second // step_seconds, step_seconds * SECOND
            self.give(
                batch(at_ns, present, sequence=sequence, interval_ns=interval_ns, limits=self.limits, boot_id=self.boot_id), step_seconds
            )

    def give(self, message: v1.SampleBatch | v1.InferenceWindow, step_seconds: int) -> None:
        """One message, and the tick after it; `step_seconds` later it goes on."""
        assert not self.processor.process([record(message)])
        at_ns = START_NS + self.second * SECOND
        self.second += step_seconds
        self.tick(at_ns + 300_000_000)

    def tick(self, at_ns: int) -> None:
        outs = [out for out in self.processor.tick(Tick(at_ns)) if isinstance(out, Out)]
        self.topic.keep(outs, at_ns)
        for out in outs:
            message = decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, at_ns))
            assert isinstance(message, v1.Forecast)
            assert out.key == (node_key(message.cluster, message.node) if message.node else message.entity.encode())
            self.said.append(Said((at_ns - START_NS) / SECOND, message))

    @property
    def breaches(self) -> list[Said]:
        return [said for said in self.said if said.breach]

    @property
    def withdrawals(self) -> list[Said]:
        return [said for said in self.said if said.forecast.withdrawn]
