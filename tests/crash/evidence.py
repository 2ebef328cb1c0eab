"""Judges a run from what was on the bus: owners by the allocation changes, hold times by the rules, transitions by each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from schemas import topics
from schemas.codec import decode
from schemas.flow import Record
from schemas.telemetry import v1

FOLLOWED = (
    topics.SAMPLES,
    topics.ALLOCATIONS,
    topics.ALLOCATION_CHANGES,
    topics.USAGE,
    topics.ALERTS,
    topics.ALERTS_JSON,
    topics.DLQ,
)
SECOND_NS = 1_000_000_000
WAIT_NS = 15 * SECOND_NS
"""How long a sample waits for word of its owner, and a node may say nothing (ARCHITECTURE §5; the settings' defaults)."""


@dataclass
class Evidence:
    """Fed with every record; `judge` gives the figures."""

    opened: dict[str, v1.Allocation] = field(default_factory=dict)
    closed_at_ns: dict[str, int] = field(default_factory=dict)
    usage: list[v1.AttributedBatch] = field(default_factory=list)
    alerts: list[v1.Alert] = field(default_factory=list)
    taken: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    words: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Per node: (state as of, when it was sent) of each allocation snapshot."""
    json_records: int = 0
    dead_letters: int = 0

    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.topic == topics.DLQ:
                self.dead_letters += 1
            elif record.topic == topics.ALERTS_JSON:
                self.json_records += 1
            else:
                self._message(decode(record), record.timestamp_ns)

    def _message(self, message: object, sent_at_ns: int) -> None:
        match message:
            case v1.SampleBatch():
                self.taken[(message.cluster, message.node)].append(message.taken_at_ns)
            case v1.AllocationSnapshot():
                self.words[(message.cluster, message.node)].append((message.taken_at_ns, sent_at_ns))
            case v1.AllocationChange():
                self.opened.setdefault(message.allocation.id, message.allocation)
                if message.kind == v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_CLOSED:
                    self.closed_at_ns[message.allocation.id] = message.allocation.ended_at_ns or message.at_ns
            case v1.AttributedBatch():
                self.usage.append(message)
            case v1.Alert():
                self.alerts.append(message)

    def owners(self) -> tuple[int, int, int, Counter[str]]:
        """Rows looked at; rows left unknown because no word of the node's allocations came within 15 s (its agent was down); rows whose
        owner is not the one that the allocation changes say; and what was wrong with those."""
        by_device: dict[str, list[v1.Allocation]] = defaultdict(list)
        for allocation in self.opened.values():
            by_device[allocation.device_uid].append(allocation)
        rows = wrong = excused = 0
        why: Counter[str] = Counter()
        for batch in self.usage:
            late = self._word_came_late(batch)
            for row in batch.rows:
                rows += 1
                holders = [a for a in by_device[row.uid] if a.started_at_ns <= batch.taken_at_ns < self.closed_at_ns.get(a.id, 2**63)]
                expected = holders[0].workload.pod if len(holders) == 1 else ""
                unknown = row.owner_state == v1.OwnerState.OWNER_STATE_UNKNOWN
                if unknown and late:
                    excused += 1
                elif unknown or row.workload.pod != expected:
                    wrong += 1
                    why[f"{v1.OwnerState.Name(row.owner_state)}: {row.workload.pod or '-'} for {expected or '-'}"] += 1
        return rows, excused, wrong, why

    def _word_came_late(self, batch: v1.AttributedBatch) -> bool:
        """Whether nobody could have said in time who held the node's devices: a fact of the run, not of the join."""
        words = self.words[(batch.cluster, batch.node)]
        first = min((sent for as_of, sent in words if as_of >= batch.taken_at_ns), default=2**63)
        return first > batch.taken_at_ns + WAIT_NS - SECOND_NS

    def silences(self) -> tuple[int, int]:
        """(node_silent alerts, those of a node that was not silent for 15 s)."""
        fired = [a for a in self.alerts if a.rule == "node_silent" and a.status == v1.AlertStatus.ALERT_STATUS_FIRING]
        false = 0
        for alert in fired:
            times = sorted(self.taken[(alert.cluster, alert.node)])
            gaps = [(a, b) for a, b in pairwise(times) if b - a > WAIT_NS - SECOND_NS]
            false += not any(a <= alert.at_ns <= b + 2 * SECOND_NS for a, b in gaps)
        return len(fired), false

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
            # a silence begins with the last word, so its own length is part of the wait
            (a.rule, (a.fired_at_ns - a.started_at_ns - (WAIT_NS if a.rule == "node_silent" else 0)) / 1e9 - hold_seconds.get(a.rule, 0.0))
            for a in self.alerts
            if a.status == v1.AlertStatus.ALERT_STATUS_FIRING
        ]

    def fired(self, rule: str) -> int:
        return len({a.episode for a in self.alerts if a.rule == rule and a.status == v1.AlertStatus.ALERT_STATUS_FIRING})
