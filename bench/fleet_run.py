"""Runs simulated days through the shipped detect and alert roles and keeps what they raised.

Days are clusters of one fleet that the roles watch together: they share nothing but the calls, which is what makes them cheap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.fleet_feed import STEP_SECONDS, Feed, ViewReader
from bench.fleet_plan import SECOND_NS
from schemas import topics
from schemas.flow import Out, Partition, Record, Tick
from schemas.telemetry import v1
from streams.processors.alert import AlertProcessor
from streams.processors.detect import DetectProcessor
from streams.settings import Alerting, Detect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collectors.simulated.fleet import Fleet
    from schemas.flow import Emitted

_OWNED: Final = frozenset(Partition(topic, 0) for topic in DetectProcessor.inputs)
_SHADOW: Final = v1.AlertMode.ALERT_MODE_SHADOW
_ANOMALY: Final = v1.FindingKind.FINDING_KIND_ANOMALY


class Raised(NamedTuple):
    """A finding that became active; `seconds` into the day. A shadow is stored and nobody is told."""

    seconds: float
    rule: str
    entity: str
    metric: str
    detector: str
    anomaly: bool
    shadow: bool
    value: float
    score: float


class Fired(NamedTuple):
    """An alert that began to fire, with the incident that it is part of."""

    seconds: float
    rule: str
    entity: str
    incident: str


@dataclass(slots=True)
class Day:
    """What was raised, fired and explained in one day."""

    raised: list[Raised] = field(default_factory=list)
    fired: list[Fired] = field(default_factory=list)
    explained: int = 0


class _Nothing:
    """A bus that holds nothing yet, with one partition a topic."""

    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
        yield from ()

    def partitions(self, topic: str) -> int:
        return 1


@dataclass(slots=True)
class _Line:
    """Detect and alert, one after the other. With `models` detect reads in the next step what it wrote for itself: peer statistics, which
    a shadow rule compares across nodes for more time than all else takes."""

    detect: DetectProcessor
    alert: AlertProcessor
    began_ns: int
    days: dict[str, Day]
    models: bool = False
    _valid_ns: dict[tuple[str, str], int] = field(default_factory=dict)
    """Until when each active finding is true; one that nobody repeated is over."""
    _again: list[Record] = field(default_factory=list)
    _offset: int = 0

    def take(self, records: Sequence[Record], at_ns: int) -> None:
        own, self._again = self._again, []
        self._detected(self.detect.process([*own, *records]), at_ns)

    def tick(self, at_ns: int) -> None:
        self._detected(self.detect.tick(Tick(at_ns)), at_ns)
        self._alerted(self.alert.tick(Tick(at_ns)))

    def _detected(self, emitted: Sequence[Emitted], at_ns: int) -> None:
        findings: list[Record] = []
        for out in emitted:
            if not isinstance(out, Out):
                raise AssertionError(f"the detect role wrote a dead letter: {out}")
            self._offset += 1
            made = Record(out.topic, 0, self._offset, out.key, out.value, out.headers, at_ns)
            if out.topic == topics.FINDINGS:
                findings.append(made)
                self._noted(v1.Finding.FromString(out.value or b""), at_ns)
            elif self.models and out.topic in self.detect.inputs:
                self._again.append(made)
        if findings:
            self._alerted(self.alert.process(findings))

    def _noted(self, finding: v1.Finding, at_ns: int) -> None:
        key, day = (finding.rule, finding.entity), self.days[finding.cluster]
        if not finding.active:
            self._valid_ns.pop(key, None)
            day.explained += bool(finding.explained_by)
            return
        begins = self._valid_ns.get(key, 0) < at_ns
        self._valid_ns[key] = finding.valid_until_ns
        if begins:
            day.raised.append(
                Raised(
                    (at_ns - self.began_ns) / SECOND_NS,
                    finding.rule,
                    finding.entity,
                    finding.metric,
                    finding.detector,
                    finding.kind == _ANOMALY,
                    finding.mode == _SHADOW,
                    finding.value,
                    finding.score,
                )
            )

    def _alerted(self, emitted: Sequence[Emitted]) -> None:
        for out in emitted:
            if not isinstance(out, Out) or out.topic != topics.ALERTS:
                continue
            alert = v1.Alert.FromString(out.value or b"")
            if alert.status == v1.AlertStatus.ALERT_STATUS_FIRING and alert.mode != _SHADOW:
                seconds = (alert.at_ns - self.began_ns) / SECOND_NS
                self.days[alert.cluster].fired.append(Fired(seconds, alert.rule, alert.entity, alert.incident or alert.episode))


def run(fleets: Sequence[Fleet], seconds: int, *, messages: bool = False, models: bool = False) -> list[Day]:
    """What is raised in each fleet's day; they begin at the same moment, each in a cluster of its own. With `messages`
    samples go through their bytes; with `models` devices are compared across nodes too."""
    detect, alert = DetectProcessor.of(Detect(), rebuild_seconds=120), AlertProcessor.of(Alerting())
    detect.restore(_Nothing(), _OWNED)
    alert.restore(_Nothing(), frozenset({Partition(topics.FINDINGS, 0)}))
    feeds = [Feed(fleet, messages) for fleet in fleets]
    if not messages:
        detect.samples.reader = ViewReader(feeds, detect.samples.plan.metrics)
    began_ns = fleets[0].started_at_ns
    line = _Line(detect, alert, began_ns, {feed.cluster: Day() for feed in feeds}, models)
    line.take([record for feed in feeds for record in feed.inventory()], began_ns)
    for second in range(STEP_SECONDS, seconds + 1, STEP_SECONDS):
        at_ns = began_ns + second * SECOND_NS
        if records := [record for feed in feeds for record in feed.step()]:
            line.take(records, at_ns)
        line.tick(at_ns)
    return list(line.days.values())
