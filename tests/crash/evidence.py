"""Judges a run from what was on the bus: owners by the allocation changes, hold times by the rules, transitions by each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas import topics
from schemas.codec import decode
from schemas.flow import Record
from schemas.telemetry import v1

FOLLOWED = (topics.ALLOCATION_CHANGES, topics.USAGE, topics.ALERTS, topics.ALERTS_JSON, topics.DLQ)


@dataclass
class Evidence:
    """Fed with every record; `judge` gives the figures."""

    opened: dict[str, v1.Allocation] = field(default_factory=dict)
    closed_at_ns: dict[str, int] = field(default_factory=dict)
    usage: list[v1.AttributedBatch] = field(default_factory=list)
    alerts: list[v1.Alert] = field(default_factory=list)
    json_records: int = 0
    dead_letters: int = 0

    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.topic == topics.DLQ:
                self.dead_letters += 1
            elif record.topic == topics.ALERTS_JSON:
                self.json_records += 1
            else:
                self._message(decode(record))

    def _message(self, message: object) -> None:
        match message:
            case v1.AllocationChange():
                self.opened.setdefault(message.allocation.id, message.allocation)
                if message.kind == v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_CLOSED:
                    self.closed_at_ns[message.allocation.id] = message.allocation.ended_at_ns or message.at_ns
            case v1.AttributedBatch():
                self.usage.append(message)
            case v1.Alert():
                self.alerts.append(message)

    def wrong_owners(self) -> tuple[int, int, Counter[str]]:
        """(rows looked at, rows whose owner is not the one the allocation changes say, what was wrong)."""
        by_device: dict[str, list[v1.Allocation]] = defaultdict(list)
        for allocation in self.opened.values():
            by_device[allocation.device_uid].append(allocation)
        rows = wrong = 0
        why: Counter[str] = Counter()
        for batch in self.usage:
            for row in batch.rows:
                rows += 1
                holders = [a for a in by_device[row.uid] if a.started_at_ns <= batch.taken_at_ns < self.closed_at_ns.get(a.id, 2**63)]
                expected = holders[0].workload.pod if len(holders) == 1 else ""
                if row.workload.pod != expected or row.owner_state == v1.OwnerState.OWNER_STATE_UNKNOWN:
                    wrong += 1
                    why[f"{v1.OwnerState.Name(row.owner_state)}: {row.workload.pod or '-'} for {expected or '-'}"] += 1
        return rows, wrong, why

    def transitions(self) -> Counter[tuple[str, str, int]]:
        return Counter((a.fingerprint, a.episode, a.status) for a in self.alerts)

    def notified(self) -> list[v1.Alert]:
        """Alerts that people are told of: those in shadow mode are stored only, and may stay open for as long as they like."""
        return [a for a in self.alerts if a.mode != v1.AlertMode.ALERT_MODE_SHADOW]

    def owed(self) -> set[tuple[str, str]]:
        """(episode, status) that a webhook's receiver must have got."""
        return {(a.episode, v1.AlertStatus.Name(a.status).removeprefix("ALERT_STATUS_").lower()) for a in self.notified()}

    def doubled(self) -> int:
        return sum(n - 1 for n in self.transitions().values())

    def unresolved(self) -> list[str]:
        """Episodes that fired and were never resolved."""
        fired = {a.episode: a for a in self.notified() if a.status == v1.AlertStatus.ALERT_STATUS_FIRING}
        resolved = {a.episode for a in self.alerts if a.status == v1.AlertStatus.ALERT_STATUS_RESOLVED}
        return [f"{a.rule} {a.entity}" for e, a in fired.items() if e not in resolved]

    def holds(self, hold_seconds: dict[str, float]) -> list[tuple[str, float]]:
        """(rule, seconds between start and firing minus the rule's hold time) of each firing."""
        return [
            (a.rule, (a.fired_at_ns - a.started_at_ns) / 1e9 - hold_seconds.get(a.rule, 0.0))
            for a in self.alerts
            if a.status == v1.AlertStatus.ALERT_STATUS_FIRING
        ]

    def fired(self, rule: str) -> int:
        return len({a.episode for a in self.alerts if a.rule == rule and a.status == v1.AlertStatus.ALERT_STATUS_FIRING})
