"""The one table of topics: key, message, partitions, retention, and which role reads and writes each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from schemas.telemetry import v1

if TYPE_CHECKING:
    from google.protobuf.message import Message

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""`max.message.bytes` of every topic: a full-size DLQ record and any later, larger message fit."""

MAX_VALUE_BYTES: Final = 1024 * 1024
"""What our own roles write and accept; the largest real message (an allocation snapshot of a busy node) stays below 200 KiB."""

Key = Literal[
    "cluster/node", "cluster/node[/uid]", "cluster/node or entity", "service", "cluster/model", "rule+entity", "fingerprint", "original"
]


@dataclass(frozen=True, slots=True)
class Topic:
    """One row. `partitions` None means the fleet's count (12; 4 in the local stack). `retention_ms` None means compacted.

    `message` is None where the value is not protobuf (JSON, the DLQ's raw bytes) or nothing of ours writes it yet.
    """

    name: str
    key: Key
    message: type[Message] | None
    partitions: int | None
    retention_ms: int | None
    append_time: bool
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    meaning: str

    @property
    def compacted(self) -> bool:
        return self.retention_ms is None


SAMPLES: Final = "xpulse.samples"
INVENTORY: Final = "xpulse.inventory"
DEVICE_EVENTS: Final = "xpulse.device-events"
CONTEXT_EVENTS: Final = "xpulse.context-events"
ALLOCATIONS: Final = "xpulse.allocations"
ALLOCATION_CHANGES: Final = "xpulse.allocation-changes"
INFERENCE: Final = "xpulse.inference"
USAGE: Final = "xpulse.usage"
SERVICE_PARTS: Final = "xpulse.service-parts"
SERVICES: Final = "xpulse.services"
PEER_STATS: Final = "xpulse.peer-stats"
FINDINGS: Final = "xpulse.findings"
ALERT_STATE: Final = "xpulse.alert-state"
ALERTS: Final = "xpulse.alerts"
ALERTS_JSON: Final = "xpulse.alerts.json"
FORECASTS: Final = "xpulse.forecasts"
RECORDINGS: Final = "xpulse.recordings"
DLQ: Final = "xpulse.dlq"

# fmt: off
TOPICS: Final[tuple[Topic, ...]] = (
    Topic(SAMPLES, "cluster/node", v1.SampleBatch, None, DAY_MS, True, ("agent",), ("attribute", "detect", "sqlite", "influxdb", "forecast"), "what the devices said, one batch per node, source and tick"),
    Topic(INVENTORY, "cluster/node[/uid]", v1.InventoryRecord, None, None, False, ("agent",), ("detect", "sqlite", "influxdb"), "which nodes and devices exist"),
    Topic(DEVICE_EVENTS, "cluster/node", v1.DeviceEvent, None, 30 * DAY_MS, True, ("agent",), ("detect", "sqlite", "influxdb"), "Xid, hot-plug, lost, hang, maintenance"),
    Topic(CONTEXT_EVENTS, "cluster/node or entity", v1.ContextEvent, None, 7 * DAY_MS, True, ("agent",), ("detect", "sqlite", "influxdb"), "deploys, restarts, maintenance: what explains a change"),
    Topic(ALLOCATIONS, "cluster/node", v1.AllocationSnapshot, None, None, False, ("agent",), ("attribute",), "who holds which device, the node's full state"),
    Topic(ALLOCATION_CHANGES, "cluster/node", v1.AllocationChange, None, 40 * DAY_MS, True, ("agent",), ("sqlite", "influxdb",), "intervals opened, closed, corrected: what billing reads"),
    Topic(INFERENCE, "cluster/node", v1.InferenceWindow, None, DAY_MS, True, ("agent",), ("detect", "sqlite", "influxdb", "forecast"), "what the inference servers did per window"),
    Topic(USAGE, "cluster/node", v1.AttributedBatch, None, DAY_MS, True, ("attribute",), ("detect", "sqlite", "influxdb"), "how much of a device each workload used"),
    Topic(SERVICE_PARTS, "service", None, None, DAY_MS, True, (), (), "reserved: per-node features of a service"),
    Topic(SERVICES, "service", None, None, DAY_MS, True, (), (), "reserved: per-service views"),
    Topic(PEER_STATS, "cluster/model", v1.PeerStats, 1, DAY_MS, True, ("detect",), ("detect",), "sketches for comparing a device with its like"),
    Topic(FINDINGS, "rule+entity", v1.Finding, 1, 7 * DAY_MS, False, ("detect",), ("alert", "sqlite", "influxdb"), "what is odd now: levels, repeated every 15 s while active"),
    Topic(ALERT_STATE, "fingerprint", v1.AlertState, 1, None, False, ("alert",), ("alert", "detect"), "state of each open episode"),
    Topic(ALERTS, "fingerprint", v1.Alert, 1, 30 * DAY_MS, False, ("alert",), ("alert", "notify", "mirror", "sqlite", "influxdb"), "alert transitions"),
    Topic(ALERTS_JSON, "fingerprint", None, 1, 30 * DAY_MS, False, ("mirror",), (), "the same as JSON, for plain consumers"),
    Topic(FORECASTS, "cluster/node or entity", v1.Forecast, None, 7 * DAY_MS, False, ("forecast",), ("forecast", "detect", "sqlite", "influxdb"), "where a series goes, and withdrawals"),
    Topic(RECORDINGS, "cluster/node", None, None, 7 * DAY_MS, True, (), (), "reserved: high-rate recordings around an event"),
    Topic(DLQ, "original", None, None, 30 * DAY_MS, True, ("attribute", "detect", "alert", "sqlite", "influxdb", "notify", "mirror", "forecast"), (), "what could not be processed, with its reason"),
)
# fmt: on
BY_NAME: Final = {t.name: t for t in TOPICS}


def topic(name: str) -> Topic:
    """The row of that (unprefixed) name; KeyError lists the names."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise KeyError(f"no topic {name!r}; topics: {', '.join(BY_NAME)}") from None


def settings(row: Topic, *, replication: int = 1, min_insync: int = 1) -> dict[str, str]:
    """Kafka's topic configuration of a row, as `xpulse topics create` sets and verifies it."""
    found = {
        "max.message.bytes": str(MAX_MESSAGE_BYTES),
        "message.timestamp.type": "LogAppendTime" if row.append_time else "CreateTime",
        "min.insync.replicas": str(min(min_insync, replication)),
    }
    if row.retention_ms is None:
        # A consumer that was down for a week must still see the tombstones (streams.md §5).
        found |= {"cleanup.policy": "compact", "delete.retention.ms": str(7 * DAY_MS), "segment.ms": str(HOUR_MS)}
    else:
        found |= {"cleanup.policy": "delete", "retention.ms": str(row.retention_ms)}
    return found
