"""A worker whose samples, windows and forecasts go into a real embedded store, and the report over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import Message

from forecasting.scoring.report import Report, score
from schemas import topics
from schemas.flow import Record
from schemas.telemetry import v1
from sinks.sqlite.store import SqliteStore
from sinks.sqlite.writer import SqliteWriter
from sinks.store import StoreProcessor
from tests.fakes.log_reader import LogReader
from tests.fakes.store_messages import record
from tests.unit.forecasting.fleet import START_NS, Run

CENTURY_NS = 100 * 365 * 86_400 * 10**9


@dataclass
class Kept(Run):
    """`records` collects everything that the bus carried."""

    records: list[Record] = field(default_factory=list)

    def give(self, message: v1.SampleBatch | v1.InferenceWindow, step_seconds: int) -> None:
        topic = topics.SAMPLES if isinstance(message, v1.SampleBatch) else topics.INFERENCE
        self.records.append(record(topic, message, len(self.records)))
        super().give(message, step_seconds)

    def happened(self, message: Message) -> None:
        """A device or context event, or a change of an allocation."""
        topic = {
            "DeviceEvent": topics.DEVICE_EVENTS,
            "ContextEvent": topics.CONTEXT_EVENTS,
            "AllocationChange": topics.ALLOCATION_CHANGES,
        }[type(message).__name__]
        self.records.append(record(topic, message, len(self.records)))

    @property
    def now_ns(self) -> int:
        return START_NS + self.second * 10**9

    def report(self, folder: Path, *, metrics: tuple[str, ...] = ()) -> Report:
        with self.store(folder) as store:
            return score(
                store,
                {target.metric: target for target in self.settings.targets},
                start_ns=START_NS,
                end_ns=self.now_ns,
                standing_from=self.settings.recede_probability_ratio,
                metrics=metrics,
            )

    @contextmanager
    def store(self, folder: Path) -> Iterator[SqliteStore]:
        path = folder / "kept.sqlite"
        writer = SqliteWriter(path, retention_ns=CENTURY_NS, max_bytes=1 << 28)
        processor = StoreProcessor("sqlite", writer, identity_tries=0)
        processor.restore(LogReader({}), frozenset())
        try:
            assert processor.process([*self.records, *self.topic.records]) == []
            store = SqliteStore(path)
            yield store
            store.close()
        finally:
            writer.close()
