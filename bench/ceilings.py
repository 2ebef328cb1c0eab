"""What the parts beneath the line can do alone: raw writes of the same points to each store, and reading the bus without looking."""

from __future__ import annotations

import http.client
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlencode

from confluent_kafka import Consumer, TopicPartition

from bench.flow import WINDOW, Feeder
from bench.load import Load
from bench.stack import cpu_seconds
from schemas import topics
from schemas.codec import HEADERS
from schemas.flow import Record
from sinks.influxdb.line import Encoder
from sinks.sqlite.schema import open_for_writing, quoted
from sinks.store import StoreProcessor
from tests.integration.servers.influxdb import InfluxServer
from xpulse.bus.settings import LOCAL_PARTITIONS, Bus, librdkafka_config

if TYPE_CHECKING:
    from sinks.points import Point, RejectedPoint

BATCH: Final = 5000
"""Lines or rows of one write, as the sinks write them and as servers.md measured."""

MOST_POINTS: Final = 100_000
_READS: Final = 10
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Rate:
    """Items a second, and CPU of whoever took them (µs an item)."""

    per_second: float
    cpu_us: float


class _Keep:
    """A PointWriter that keeps what it is given."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.dropped: Counter[str] = Counter()

    def write(self, points: Sequence[Point]) -> list[RejectedPoint]:
        self.points += points
        return []

    def close(self) -> None: ...


def device_points(load: Load, most: int = MOST_POINTS) -> list[Point]:
    """The points that the store's writer makes of the load's samples."""
    keep = _Keep()
    processor = StoreProcessor("sqlite", keep)
    offset = 0
    for number in range(load.shape.ticks):
        records = []
        for message in load.tick(number):
            if message.topic == topics.SAMPLES:
                records.append(Record(message.topic, 0, offset, message.key, message.value, HEADERS, load.started_at_ns))
                offset += 1
        processor.process(records)
        if len(keep.points) >= most:
            break
    return keep.points[:most]


def raw_influx(server: InfluxServer, points: Sequence[Point]) -> Rate:
    """Ready lines, plain, one connection, batches of 5,000."""
    lines = Encoder().lines(points)
    bodies = [b"\n".join(part) for part in _parts(lines)]
    query = urlencode({"org": server.org, "bucket": server.bucket, "precision": "ns"})
    host = server.url.removeprefix("http://")
    before, began = cpu_seconds(server.pid), time.monotonic()
    with closing(http.client.HTTPConnection(host, timeout=60)) as connection:
        for body in bodies:
            connection.request("POST", f"/api/v2/write?{query}", body, {"Authorization": f"Token {server.token}"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 204:
                raise RuntimeError(f"InfluxDB answered {answer.status}: {text[:300].decode(errors='replace')}")
    seconds = time.monotonic() - began
    return Rate(len(lines) / seconds, (cpu_seconds(server.pid) - before) / len(lines) * 1e6)


def raw_sqlite(folder: Path, points: Sequence[Point]) -> Rate:
    """Ready rows into the embedded store's own tables, a transaction of 5,000 at a time, without looking for one that is there already."""
    series: dict[tuple[str, ...], int] = {}
    batches: list[dict[str, list[tuple[object, ...]]]] = []
    for part in _parts(points):
        rows: dict[str, list[tuple[object, ...]]] = {}
        for point in part:
            number = series.setdefault(point.tags, len(series) + 1)
            names = ", ".join(quoted(name) for name in point.fields)
            places = ", ".join("?" for _ in range(len(point.fields) + 2))
            statement = f"INSERT INTO device (series, time_ns, {names}) VALUES ({places})"
            rows.setdefault(statement, []).append((number, point.time_ns, *point.fields.values()))
        batches.append(rows)
    path = folder / "raw.sqlite"
    connection: sqlite3.Connection
    with closing(open_for_writing(path, synchronous="normal")) as connection:
        before, began = time.process_time(), time.monotonic()
        for rows in batches:
            connection.execute("BEGIN IMMEDIATE")
            for statement, values in rows.items():
                connection.executemany(statement, values)
            connection.execute("COMMIT")
        seconds, cpu = time.monotonic() - began, time.process_time() - before
    return Rate(len(points) / seconds, cpu / len(points) * 1e6)


def consume_only(bus: Bus, load: Load) -> Rate:
    """Device samples a second of a consumer that takes batches of 500 messages and looks at none."""
    feeder, sent = Feeder(bus), 0
    for number in range(load.shape.ticks):
        batches = [message for message in load.tick(number) if message.topic == topics.SAMPLES]
        if sent + len(batches) > WINDOW:
            break
        feeder.send(batches)
        sent += len(batches)
    feeder.flush()
    config = {"group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 50, "fetch.queue.backoff.ms": 20}
    consumer = Consumer(librdkafka_config(bus) | config)
    seconds = cpu = 0.0
    try:
        for _ in range(_READS):
            before, began = time.process_time(), time.monotonic()
            consumer.assign([TopicPartition(bus.wire(topics.SAMPLES), partition, 0) for partition in range(LOCAL_PARTITIONS)])
            left = sent
            while left > 0:
                left -= sum(1 for message in consumer.consume(min(500, left), 1.0) if message.error() is None)
            seconds += time.monotonic() - began
            cpu += time.process_time() - before
    finally:
        consumer.close()
    samples = sent * load.shape.devices * _READS
    return Rate(samples / seconds, cpu / samples * 1e6)


def _parts(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
