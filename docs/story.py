"""Plays a scenario of the simulated fleet through the shipped detect and alert roles, and keeps what a picture shows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.fleet_feed import Feed, ViewReader
from collectors.simulated.fleet import Fleet
from collectors.simulated.settings import Simulated
from schemas import topics
from schemas.flow import Out, Partition, Record, Tick
from schemas.telemetry import v1
from streams.processors.alert import AlertProcessor
from streams.processors.detect import DetectProcessor
from streams.settings import Alerting, Detect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from schemas.flow import Emitted

CLUSTER: Final = "docs"
STARTED_AT_NS: Final = 1_780_000_000 * 1_000_000_000
"""In May 2026, at no round hour: a simulated day begins with it."""


class _Nothing:
    """A bus that holds nothing, with one partition a topic."""

    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
        yield from ()

    def partitions(self, topic: str) -> int:
        return 1


@dataclass
class Story:
    """What happened. `minutes` (T,); `columns[metric]` (T, devices), as the devices said it; findings and alerts in their order."""

    fleet: Fleet
    minutes: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    columns: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    findings: list[v1.Finding] = field(default_factory=list)
    alerts: list[v1.Alert] = field(default_factory=list)

    def minute(self, at_ns: int) -> float:
        return (at_ns - STARTED_AT_NS) / 60e9

    def card(self, fault: int = 0) -> int:
        """The (first) card that a fault falls on."""
        return self.fleet.faults[fault].cards[0]

    def about(self, card: int) -> list[v1.Finding]:
        """Findings about a card."""
        return [f for f in self.findings if f.entity == f"device/{self.fleet.layout.devices[card].uid}"]


def play(seconds: int, metrics: Sequence[str], **settings: Any) -> Story:
    """A scenario of so many seconds, ten of them a step."""
    fleet = Fleet(Simulated(clusters=(CLUSTER,), **settings), clusters=(CLUSTER,), started_at_ns=STARTED_AT_NS)
    detect, alert = DetectProcessor.of(Detect(), rebuild_seconds=120), AlertProcessor.of(Alerting())
    detect.restore(_Nothing(), frozenset(Partition(topic, 0) for topic in DetectProcessor.inputs))
    alert.restore(_Nothing(), frozenset({Partition(topics.FINDINGS, 0)}))
    feed = Feed(fleet)
    detect.samples.reader = ViewReader([feed], detect.samples.plan.metrics)
    story, minutes, again = Story(fleet), [], list(feed.inventory())
    kept: dict[str, list[NDArray[np.float64]]] = {name: [] for name in metrics}
    while story.minute(feed.at_ns) * 60 < seconds:
        records = feed.step()
        at_ns = feed.at_ns
        findings: list[Record] = []
        emitted = [*detect.process([*again, *records]), *detect.tick(Tick(at_ns))]
        again = []
        for out in _outs(emitted):
            made = Record(out.topic, 0, len(story.findings), out.key, out.value, out.headers, at_ns)
            if out.topic == topics.FINDINGS:
                story.findings.append(v1.Finding.FromString(out.value or b""))
                findings.append(made)
            else:
                again.append(made)
        for out in _outs([*alert.process(findings), *alert.tick(Tick(at_ns))]):
            if out.topic == topics.ALERTS:
                story.alerts.append(v1.Alert.FromString(out.value or b""))
        minutes.append(story.minute(at_ns))
        for name in metrics:
            kept[name].append(np.where(feed.seen.lost, np.nan, feed.seen.columns[name].astype(np.float64)))
    story.minutes = np.array(minutes)
    story.columns = {name: np.stack(rows) for name, rows in kept.items()}
    return story


def _outs(emitted: Sequence[Emitted]) -> list[Out]:
    return [out for out in emitted if isinstance(out, Out)]
