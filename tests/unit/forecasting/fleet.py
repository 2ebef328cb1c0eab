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
) -> v1.SampleBatch:
    """One node's batch; a metric that is not named was not due. Every 60th sequence carries the limits, as full samples do."""
    full = sequence % 60 == 0
    samples = []
    for index, (uid, values) in enumerate(devices.items()):
        typed = {name: int(value) if name.endswith("_bytes") else value for name, value in values.items()}
        sample = v1.DeviceSample(uid=uid, index=index, full=full, **typed)  # type: ignore[arg-type]  # the names are the tests' own
        if full:
            sample.memory_total_bytes, sample.temperature_slowdown_celsius = int(TOTAL), 87.0
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
        devices=samples,
        simulated=True,
    )


def record(message: v1.SampleBatch, *, offset: int = 0) -> Record:
    out = encode(topics.SAMPLES, node_key(message.cluster, message.node), message)
    return Record(out.topic, 0, offset, out.key, out.value, out.headers, message.taken_at_ns)


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
            assert not self.processor.process(
                [record(batch(at_ns, present, sequence=self.second // step_seconds, interval_ns=step_seconds * SECOND))]
            )
            self.second += step_seconds
            self.tick(at_ns + 300_000_000)

    def tick(self, at_ns: int) -> None:
        outs = [out for out in self.processor.tick(Tick(at_ns)) if isinstance(out, Out)]
        self.topic.keep(outs, at_ns)
        for out in outs:
            message = decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, at_ns))
            assert isinstance(message, v1.Forecast)
            assert out.key == message.entity.encode()
            self.said.append(Said((at_ns - START_NS) / SECOND, message))

    @property
    def breaches(self) -> list[Said]:
        return [said for said in self.said if said.breach]

    @property
    def withdrawals(self) -> list[Said]:
        return [said for said in self.said if said.forecast.withdrawn]
