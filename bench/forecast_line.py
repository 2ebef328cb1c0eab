"""Simulated fleets on a grid of minutes through the shipped forecaster, detect and alert roles: what is foretold, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bench.fleet_feed import Feed, record
from bench.forecast_corpus import MINUTE_NS, STARTED_AT_NS
from collectors.simulated.layout import VENDOR
from forecasting.pool import Inline
from forecasting.settings import Forecasting
from forecasting.worker import ForecastProcessor
from schemas import topics
from schemas.catalogue import BY_NAME
from schemas.flow import Out, Partition, Record, Tick
from schemas.identity import node_key
from schemas.telemetry import v1
from streams.processors.alert import AlertProcessor
from streams.processors.detect import DetectProcessor
from streams.rules import load_rules
from streams.rules.condition import Forecasted
from streams.settings import Alerting, Detect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from collectors.simulated.fleet import Fleet, View
    from schemas.flow import Emitted, Processor

    Columns = dict[str, NDArray[np.float64]]
    Change = Callable[[int, Columns], None]

CONSTANTS: Final = ("memory_total_bytes", "temperature_slowdown_celsius", "power_limit_watts")
"""The agent sends them with each sixtieth sample, which is each minute."""


class Alerted(NamedTuple):
    """A predictive alert that began to fire, not in shadow."""

    minute: float
    cluster: str
    rule: str
    metric: str
    entity: str
    incident: str


class _Nothing:
    """A bus that holds nothing, with one partition a topic."""

    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
        yield from ()

    def partitions(self, topic: str) -> int:
        return 1


def metrics() -> tuple[str, ...]:
    """Fields of devices that the shipped targets follow."""
    return tuple(target.metric for target in Forecasting().targets if not target.of_service)


def predictive_rules() -> dict[str, str]:
    """{rule: metric} of the shipped rules that speak of forecasts."""
    return {rule.name: rule.when.metric for rule in load_rules() if isinstance(rule.when, Forecasted)}


@dataclass(slots=True)
class Line:
    """The three roles, one after the other. `alerted` is what they told; `forecasts` counts breach forecasts that were published."""

    settings: Forecasting = field(default_factory=lambda: Forecasting(workers=0, plain_every_rounds=1_000_000))
    alerted: list[Alerted] = field(default_factory=list)
    forecasts: int = 0
    _forecaster: ForecastProcessor = field(init=False)
    _detect: DetectProcessor = field(init=False)
    _alert: AlertProcessor = field(init=False)
    _rules: dict[str, str] = field(init=False)
    _offset: int = 0

    def __post_init__(self) -> None:
        self._rules = predictive_rules()
        self._forecaster = ForecastProcessor(self.settings, clock_ns=lambda: STARTED_AT_NS, pool=Inline())
        self._detect, self._alert = DetectProcessor.of(Detect(), rebuild_seconds=120), AlertProcessor.of(Alerting())
        for role, inputs in (
            (self._forecaster, self._forecaster.inputs),
            (self._detect, self._detect.inputs),
            (self._alert, self._alert.inputs),
        ):
            role.restore(_Nothing(), frozenset(Partition(topic, 0) for topic in inputs))

    def inventory(self, fleets: Sequence[Fleet]) -> None:
        self._pass(self._detect, [r for fleet in fleets for r in Feed(fleet).inventory()], STARTED_AT_NS)

    def minute(self, batches: Sequence[v1.SampleBatch], at_ns: int) -> None:
        """Give the minute's samples to the forecaster and what it says to the others."""
        made = [record(topics.SAMPLES, node_key(batch.cluster, batch.node), batch, at_ns) for batch in batches]
        said = self._records(self._forecaster.process(made), at_ns)
        # The step is over when the next one has begun.
        said += self._records(self._forecaster.tick(Tick(at_ns + 1)), at_ns)
        self.forecasts += sum(
            v1.Forecast.FromString(r.value or b"").breach_probability_ratio >= self.settings.raise_probability_ratio for r in said
        )
        self._pass(self._detect, said, at_ns)
        self._told(self._alert.process(self._records(self._detect.tick(Tick(at_ns + 2)), at_ns)))
        self._told(self._alert.tick(Tick(at_ns + 3)))

    def _pass(self, role: Processor, records: Sequence[Record], at_ns: int) -> None:
        if records:
            self._told(self._alert.process(self._records(role.process(records), at_ns)))

    def _records(self, emitted: Sequence[Emitted], at_ns: int) -> list[Record]:
        out = []
        for item in emitted:
            if not isinstance(item, Out):
                raise AssertionError(f"a role wrote a dead letter: {item}")
            self._offset += 1
            out.append(Record(item.topic, 0, self._offset, item.key, item.value, item.headers, at_ns))
        return [r for r in out if r.topic in (topics.FORECASTS, topics.FINDINGS)]

    def _told(self, emitted: Sequence[Emitted]) -> None:
        for out in emitted:
            if not isinstance(out, Out) or out.topic != topics.ALERTS:
                continue
            alert = v1.Alert.FromString(out.value or b"")
            fires = alert.status == v1.AlertStatus.ALERT_STATUS_FIRING and alert.mode != v1.AlertMode.ALERT_MODE_SHADOW
            if fires and alert.rule in self._rules:
                minute = (alert.at_ns - STARTED_AT_NS) / MINUTE_NS
                incident = alert.incident or alert.episode
                self.alerted.append(Alerted(minute, alert.cluster, alert.rule, self._rules[alert.rule], alert.entity, incident))


def run(fleets: Sequence[Fleet], minutes: int, change: Mapping[str, Change], on_minute: Callable[[int, dict[str, Columns]], None]) -> Line:
    """Drive fleets, each a cluster of its own, for so many minutes. `change[cluster]` alters a fleet's columns before they are sent;
    `on_minute` sees {cluster: columns} as they were sent."""
    line = Line()
    line.inventory(fleets)
    names = metrics()
    for minute in range(minutes):
        at_ns = STARTED_AT_NS + minute * MINUTE_NS
        batches: list[v1.SampleBatch] = []
        sent: dict[str, Columns] = {}
        for fleet in fleets:
            cluster = fleet.layout.devices[0].node.cluster
            fleet.advance(at_ns)
            view = fleet.view()
            columns = {n: np.asarray(view.columns[n], dtype=np.float64) for n in (*names, *CONSTANTS) if n in view.columns}
            if cluster in change:
                change[cluster](minute, columns)
            sent[cluster] = columns
            batches += sampled(fleet, view, columns, minute, at_ns)
        line.minute(batches, at_ns)
        on_minute(minute, sent)
    return line


def sampled(fleet: Fleet, view: View, columns: Columns, minute: int, at_ns: int) -> list[v1.SampleBatch]:
    """One batch a node, as its agent would send it."""
    batches: dict[str, v1.SampleBatch] = {}
    for device in fleet.layout.devices:
        node = device.node
        if node.name not in batches:
            batches[node.name] = v1.SampleBatch(
                cluster=node.cluster,
                node=node.name,
                source=VENDOR,
                agent_epoch=1,
                sequence=minute,
                taken_at_ns=at_ns,
                sent_at_ns=at_ns,
                interval_ns=MINUTE_NS,
                boot_id="bench",
                driver_epoch=1,
                simulated=True,
            )
        if view.lost[device.number] or view.hung[device.number]:
            continue
        sample = batches[node.name].devices.add(uid=device.uid, index=device.index, full=True)
        for name, values in columns.items():
            value = float(values[device.number])
            setattr(sample, name, value if BY_NAME[name].wire in ("float", "double") else int(value))
    return list(batches.values())
