"""What is read again on assignment: which devices and nodes exist, and which findings stand in alert-state."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from schemas import topics
from schemas.codec import decode
from schemas.flow import Reader, Rejected
from schemas.telemetry import v1
from streams.operators.detect.levels import Level, key_of
from streams.operators.detect.roster import Roster
from streams.operators.detect.silence import Last
from streams.rules.condition import Happened, Silent

if TYPE_CHECKING:
    from streams.operators.detect.events import Events
    from streams.operators.detect.samples import Samples
    from streams.operators.detect.silence import Silence


class Inventory(NamedTuple):
    """What the inventory lists, how many records could not be read, and what the deletions in it were."""

    devices: list[v1.DeviceInfo]
    nodes: list[v1.NodeInfo]
    refused: int
    roster: Roster


def inventory(reader: Reader) -> Inventory:
    """Read all partitions of it to their ends."""
    newest: dict[bytes, v1.InventoryRecord] = {}
    deleted: dict[bytes, int] = {}
    upto: dict[int, int] = {}
    refused = 0
    for partition in range(reader.partitions(topics.INVENTORY)):
        for record in reader.read(topics.INVENTORY, partition):
            upto[partition] = record.offset
            try:
                message = decode(record)
            except Rejected:
                refused += 1
                continue
            key = record.key or b""
            if isinstance(message, v1.InventoryRecord):
                newest[key] = message
            else:
                newest.pop(key, None)
                deleted[key] = record.timestamp_ns
    roster = Roster(upto, deleted.keys() & newest.keys())
    for key, at_ns in deleted.items():
        if key not in newest and key.count(b"/") == 1:
            roster.note_gone(key, at_ns)
    devices = [r.device for r in newest.values() if r.HasField("device")]
    nodes = [r.node for r in newest.values() if r.HasField("node")]
    return Inventory(devices, nodes, refused, roster)


def context(reader: Reader) -> tuple[list[v1.ContextEvent], int]:
    """What was deployed, restarted or changed lately, wherever: an anomaly that it explains must stay explained. And how many records
    could not be read. The topic holds days of it, which are some thousands."""
    found: list[v1.ContextEvent] = []
    refused = 0
    for partition in range(reader.partitions(topics.CONTEXT_EVENTS)):
        for record in reader.read(topics.CONTEXT_EVENTS, partition):
            try:
                message = decode(record)
            except Rejected:
                refused += 1
                continue
            if isinstance(message, v1.ContextEvent):
                found.append(message)
    return found, refused


def standing(reader: Reader) -> tuple[list[v1.Finding], int]:
    """Findings of open episodes that were active when alert last wrote them, and how many records could not be read."""
    newest: dict[bytes, v1.Finding] = {}
    refused = 0
    for partition in range(reader.partitions(topics.ALERT_STATE)):
        for record in reader.read(topics.ALERT_STATE, partition):
            try:
                message = decode(record)
            except Rejected:
                refused += 1
                continue
            key = record.key or b""
            if isinstance(message, v1.AlertState) and message.HasField("last_finding") and message.last_finding.active:
                newest[key] = message.last_finding
            else:
                newest.pop(key, None)
    return list(newest.values()), refused


def seed(finding: v1.Finding, samples: Samples, silence: Silence, events: Events) -> None:
    """Let a finding stand that began before what is rewound: hysteresis, lost devices and silent nodes outlive a restart.

    Findings of rules that no longer exist are left to expire, and so are predictive ones: the forecaster says them again.
    """
    for r, rule in enumerate(samples.plan.rules):
        if rule.name == finding.rule and finding.entity.startswith("device/"):
            uid = finding.entity.removeprefix("device/")
            row = samples.fleet.device(samples.fleet.node(finding.cluster, finding.node), uid).row
            samples.table["active"][row, r] = True
            samples.table["since_ns"][row, r] = finding.since_ns
            samples.table["emitted_ns"][row, r] = finding.observed_at_ns
            return
    for rule, _ in silence.rules:
        if rule.name == finding.rule and isinstance(rule.when, Silent):
            silence.levels.active[key_of(finding)] = Level(finding)
            last = silence.nodes.setdefault((finding.cluster, finding.node), Last(None, finding.simulated))
            last.at_ns = last.at_ns or finding.since_ns
            return
    for known in events.rules:
        if known.rule.name == finding.rule and isinstance(known.when, Happened):
            lasts = known.when.lasts_seconds
            until = None if lasts is None else finding.since_ns + round(lasts * 1e9)
            events.levels.active[key_of(finding)] = Level(finding, until, finding.evidence.get("source", ""))
            return
