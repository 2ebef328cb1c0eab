"""Makes the DeviceEvents that the agent itself and its plugins report, each with an id that equal content repeats."""

from __future__ import annotations

import hashlib
from typing import Literal

from schemas.identity import NodeRef
from schemas.telemetry import v1

Kind = Literal[
    "xid",
    "vendor_log",
    "added",
    "lost",
    "returned",
    "hang",
    "recovered",
    "maintenance",
    "maintenance_ended",
    "source_unavailable",
    "reconfigured",
    "driver_reloaded",
    "missing",
]
Severity = Literal["info", "warning", "critical"]


def device_event(
    node: NodeRef,
    source: str,
    kind: Kind,
    at_ns: int,
    text: str,
    *,
    severity: Severity = "warning",
    uid: str = "",
    code: int | None = None,
    simulated: bool = False,
) -> v1.DeviceEvent:
    """A DeviceEvent; `uid` empty means the whole source."""
    event = v1.DeviceEvent(
        cluster=node.cluster,
        node=node.node,
        uid=uid,
        source=source,
        kind=f"DEVICE_EVENT_KIND_{kind.upper()}",
        at_ns=at_ns,
        severity=f"SEVERITY_{severity.upper()}",
        text=text,
        count=1,
        simulated=simulated,
    )
    if code is not None:
        event.code = code
    event.id = content_id(event)
    return event


def content_id(event: v1.DeviceEvent) -> str:
    """16 hex digits of blake2b over what makes the event itself: consumers drop doubles by it."""
    parts = (event.cluster, event.node, event.uid, event.source, str(event.kind), str(event.at_ns), str(event.code), event.text)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
