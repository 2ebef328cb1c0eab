"""Counts what went over the bus: what was published, joined, found, alerted and dead-lettered. Pure: records in, figures out."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from schemas import topics
from schemas.codec import decode
from schemas.flow import Record, Rejected
from schemas.recent import Recent
from schemas.telemetry import v1
from schemas.values import name_of

FOLLOWED = (topics.SAMPLES, topics.USAGE, topics.FINDINGS, topics.ALERTS, topics.FORECASTS, topics.DLQ)


MOST: Final = 20_000
"""Keys of each table that is kept in a run without an end; what nobody has mentioned for longest makes room."""

MOST_REASONS: Final = 500
OTHER: Final = "other reasons"


class Epoch(NamedTuple):
    """One life of one source's publisher on one node: within it sequences are gapless."""

    cluster: str
    node: str
    source: str
    agent_epoch: int


class Taken(NamedTuple):
    """What identifies a batch in the store."""

    taken_at_ns: int
    uids: tuple[str, ...]


@dataclass
class Tally:
    """`detailed` keeps each batch's identity for the comparison with the store, and each entity's counts. Leave it off for runs without an
    end: the memory then stays within bounds, entities are counted together (as ""), and of the timeline the last is kept."""

    detailed: bool = False
    published: dict[Epoch, dict[int, Taken]] = field(default_factory=dict)
    last_sequence: dict[Epoch, int] = field(default_factory=lambda: Recent(MOST))
    batches: int = 0
    repeated: int = 0
    device_samples: int = 0
    joined: set[tuple[Epoch, int]] = field(default_factory=set)
    attributed_batches: int = 0
    owners: Counter[str] = field(default_factory=Counter)
    findings: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    active: dict[tuple[str, str, str], bool] = field(default_factory=lambda: Recent(MOST))
    transitions: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    transition_ids: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    alerts: dict[str, v1.Alert] = field(default_factory=lambda: Recent(MOST))
    forecasts: dict[tuple[str, str, str], v1.Forecast] = field(default_factory=lambda: Recent(MOST))
    forecast_breaches: Counter[tuple[str, str]] = field(default_factory=Counter)
    dead_letters: Counter[tuple[str, str]] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)
    timeline: list[tuple[int, str, str, str]] = field(default_factory=list)

    def add(self, records: Iterable[Record]) -> None:
        """Take records in, in the order of each partition."""
        for record in records:
            if record.topic == topics.DLQ:
                headers = dict(record.headers)
                group, reason = _text(headers.get("group")), _text(headers.get("reason"))
                known = (group, reason) in self.dead_letters or len(self.dead_letters) < MOST_REASONS
                self.dead_letters[(group, reason if known else OTHER)] += 1
                continue
            try:
                message = decode(record)
            except Rejected as error:
                known = error.reason in self.malformed or len(self.malformed) < MOST_REASONS
                self.malformed[error.reason if known else OTHER] += 1
                continue
            match message:
                case v1.SampleBatch():
                    self._sample(message)
                case v1.AttributedBatch():
                    self._usage(message)
                case v1.Finding():
                    self._finding(message)
                case v1.Alert():
                    self._alert(message)
                case v1.Forecast():
                    self._forecast(message)

    def _sample(self, batch: v1.SampleBatch) -> None:
        epoch = Epoch(batch.cluster, batch.node, batch.source, batch.agent_epoch)
        self.last_sequence[epoch] = max(self.last_sequence.get(epoch, -1), batch.sequence)
        self.batches += 1
        self.device_samples += len(batch.devices)
        if self.detailed:
            seen = self.published.setdefault(epoch, {})
            if batch.sequence in seen:
                self.repeated += 1
            seen[batch.sequence] = Taken(batch.taken_at_ns, tuple(d.uid for d in batch.devices))

    def _usage(self, batch: v1.AttributedBatch) -> None:
        self.attributed_batches += 1
        if self.detailed:
            self.joined.add((Epoch(batch.cluster, batch.node, batch.source, batch.agent_epoch), batch.sequence))
        for row in batch.rows:
            self.owners[name_of(v1.OwnerState.DESCRIPTOR, row.owner_state)] += 1

    def _finding(self, finding: v1.Finding) -> None:
        key = (finding.rule, finding.cluster, finding.entity)
        if self.active.get(key, False) != finding.active:
            self.findings[(finding.rule, self._name(finding.entity), "active" if finding.active else "clear")] += 1
        if finding.active:
            self.active[key] = True
        else:
            self.active.pop(key, None)

    def _alert(self, alert: v1.Alert) -> None:
        status = name_of(v1.AlertStatus.DESCRIPTOR, alert.status)
        key = (alert.fingerprint, alert.episode, alert.status)
        self.transition_ids[key] += 1
        if self.transition_ids[key] == 1:
            self.transitions[(alert.rule, self._name(alert.entity), status)] += 1
            self.timeline.append((alert.at_ns, alert.rule, alert.entity, status))
        if not self.detailed and len(self.timeline) > MOST:
            del self.timeline[: MOST // 2]
            for old in list(self.transition_ids)[: -MOST // 2]:
                del self.transition_ids[old]
        if status == "resolved":
            self.alerts.pop(alert.fingerprint, None)
        else:
            self.alerts[alert.fingerprint] = alert

    def _forecast(self, forecast: v1.Forecast) -> None:
        key = (forecast.cluster, forecast.entity, forecast.metric)
        if forecast.withdrawn:
            self.forecasts.pop(key, None)
            return
        self.forecasts[key] = forecast
        if forecast.breach_probability_ratio >= 0.5:
            self.forecast_breaches[self._name(forecast.entity), forecast.metric] += 1

    def _name(self, entity: str) -> str:
        return entity if self.detailed else ""

    def snapshot(self) -> Tally:
        """A copy that stands still."""
        return copy.deepcopy(self)

    def all_joined(self) -> bool:
        """Whether everything published has its attribution."""
        return all((epoch, sequence) in self.joined for epoch, seen in self.published.items() for sequence in seen)

    def published_total(self) -> int:
        """Distinct (cluster, node, source, epoch, sequence) on xpulse.samples."""
        return sum(len(seen) for seen in self.published.values())

    def gaps(self) -> dict[Epoch, list[int]]:
        """Sequences missing inside each epoch, between its first and its last on the bus."""
        return {
            epoch: lost for epoch, seen in self.published.items() if (lost := sorted(set(range(min(seen), max(seen) + 1)) - seen.keys()))
        }

    def doubled(self) -> list[tuple[str, str, int]]:
        """Alert records that share fingerprint, episode and status."""
        return [key for key, count in self.transition_ids.items() if count > 1]


def _text(value: bytes | None) -> str:
    return (value or b"?").decode("utf-8", "replace")
