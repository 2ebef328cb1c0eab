"""Every store through the same door: a writer and a reader on the same place."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas import topics
from schemas.flow import Record
from schemas.store import Store
from sinks.influxdb.http import HttpDoor, Target
from sinks.influxdb.setup import setup
from sinks.influxdb.store import InfluxStore
from sinks.influxdb.writer import InfluxWriter
from sinks.points import PointWriter
from sinks.sqlite.store import SqliteStore
from sinks.sqlite.writer import SqliteWriter
from sinks.store import StoreProcessor
from tests.fakes.log_reader import LogReader
from tests.fakes.store_messages import inventory, record

WEEK_NS = 7 * 86_400 * 1_000_000_000


@dataclass
class Filled:
    """`put` stores records as the role would; `t0` is a whole ten seconds, ten minutes ago."""

    writer: PointWriter
    store: Store
    t0: int

    def put(self, *records: Record) -> None:
        processor = StoreProcessor("sqlite", self.writer)
        known = record(topics.INVENTORY, inventory("nvidia:a"))
        processor.restore(LogReader({(topics.INVENTORY, 0): [known]}), frozenset())
        assert processor.process(records) == []


@pytest.fixture(params=["sqlite", pytest.param("influxdb", marks=pytest.mark.integration)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Filled]:
    """An empty store."""
    t0 = (time.time_ns() // 10_000_000_000 - 60) * 10_000_000_000
    writer: PointWriter
    store: Store
    if request.param == "sqlite":
        writer = SqliteWriter(tmp_path / "x.sqlite", retention_ns=WEEK_NS, max_bytes=1 << 28)
        store = SqliteStore(tmp_path / "x.sqlite")
    else:
        server = request.getfixturevalue("influx_server")
        bucket = f"conformance-{secrets.token_hex(4)}"
        target = Target(server.url, server.org, bucket, "", 1, 30.0, True, "")
        made = setup(target, server.token, retention_seconds=WEEK_NS // 1_000_000_000)
        target = Target(server.url, server.org, bucket, made.token, 1, 30.0, True, "")
        writer = InfluxWriter(HttpDoor(target), where=bucket, batch_lines=5000)
        store = InfluxStore(target)
    yield Filled(writer, store, t0)
    store.close()
    writer.close()
