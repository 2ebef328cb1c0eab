"""After the embedded bus has died: open alerts and the inventory, taken back from the store, so that episodes end and devices are known.

The embedded bus keeps nothing. Without this, an alert that fired before would never be resolved, and would fire a second time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from schemas import topics
from schemas.codec import encode
from schemas.flow import Out
from schemas.identity import device_key
from schemas.telemetry import v1

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    from schemas.store import Latest, Store

VALID_NS: Final = 60_000_000_000
"""How long a reseeded alert waits for detect to say its finding again before the signal counts as lost."""

CLEAR_NS: Final = 5_000_000_000
"""Clear time until the next finding brings the rule's own."""


def reseed(store: Store, now_ns: int) -> list[Out]:
    """Messages for xpulse.alert-state and xpulse.inventory. Raises ConnectionError where the store does not answer."""
    return [*open_alerts(store.latest("alert"), now_ns), *inventory(store.latest("device"), now_ns)]


def open_alerts(rows: Sequence[Latest], now_ns: int) -> list[Out]:
    """The newest episode of each fingerprint, where it has fired and not been resolved."""
    firing: dict[str, tuple[Mapping[str, str], dict[str, Any]]] = {}
    resolved: set[str] = set()
    for row in sorted(rows, key=lambda r: r.at_ns):
        tags, values = dict(row.tags), {name: value for name, (value, _) in row.values.items()}
        if tags.get("status") == "resolved":
            resolved.add(str(values.get("episode")))
        elif tags.get("status") == "firing":
            firing[str(values.get("fingerprint"))] = (tags, values)
    return [
        encode(topics.ALERT_STATE, key.encode(), _state(tags, values, now_ns))
        for key, (tags, values) in firing.items()
        if values.get("episode") not in resolved
    ]


def _state(tags: Mapping[str, str], values: Mapping[str, Any], now_ns: int) -> v1.AlertState:
    owner = v1.Workload(**{n: str(values[n]) for n in ("namespace", "pod", "pod_uid", "container", "workload", "service") if values.get(n)})
    alert = v1.Alert(
        fingerprint=values["fingerprint"],
        episode=values["episode"],
        status=v1.AlertStatus.ALERT_STATUS_FIRING,
        rule=tags["rule"],
        cluster=tags["cluster"],
        node=tags.get("node", ""),
        entity=tags["entity"],
        kind=_number(v1.FindingKind, "FINDING_KIND_", values.get("kind")),  # type: ignore[arg-type]  # a number of this enum
        severity=_number(v1.Severity, "SEVERITY_", values.get("severity")),  # type: ignore[arg-type]  # as above
        mode=_number(v1.AlertMode, "ALERT_MODE_", values.get("mode")),  # type: ignore[arg-type]  # as above
        started_at_ns=int(values["started_at_ns"]),
        fired_at_ns=int(values["fired_at_ns"]),
        at_ns=int(values["fired_at_ns"]),
        metric=str(values.get("metric", "")),
        unit=str(values.get("unit", "")),
        summary=str(values.get("summary", "")),
        evidence=json.loads(str(values.get("evidence") or "{}")),
        owner=owner,
        simulated=bool(values.get("simulated")),
        runbook=str(values.get("runbook", "")),
        acknowledged_by=str(values.get("acknowledged_by", "")),
        incident=str(values.get("incident", "")),
    )
    if "value" in values:
        alert.value = float(values["value"])
    if "limit" in values:
        alert.limit = float(values["limit"])
    finding = v1.Finding(
        rule=alert.rule,
        cluster=alert.cluster,
        node=alert.node,
        entity=alert.entity,
        kind=alert.kind,
        severity=alert.severity,
        mode=alert.mode,
        active=True,
        observed_at_ns=alert.at_ns,
        since_ns=alert.started_at_ns,
        valid_until_ns=now_ns + VALID_NS,
        summary=alert.summary,
        owner=owner,
        simulated=alert.simulated,
    )
    return v1.AlertState(alert=alert, last_finding=finding, findings_offset=-1, clear_ns=CLEAR_NS)


def inventory(rows: Sequence[Latest], now_ns: int) -> list[Out]:
    """The devices the store heard of since their last full sample."""
    found = []
    for row in rows:
        tags, values = dict(row.tags), {name: value for name, (value, _) in row.values.items()}
        info = v1.DeviceInfo(
            uid=tags["uid"],
            vendor=tags.get("vendor", ""),
            model=tags.get("model", ""),
            kind=_number(v1.DeviceKind, "DEVICE_KIND_", tags.get("kind")),  # type: ignore[arg-type]  # as above
            cluster=tags["cluster"],
            node=tags["node"],
            index=int(values.get("index", 0)),
            simulated=bool(values.get("simulated")),
        )
        for name in ("serial", "bdf", "slot", "parent_uid", "driver_version", "firmware_version"):
            if values.get(name):
                setattr(info, name, str(values[name]))
        record = v1.InventoryRecord(observed_at_ns=now_ns, device=info)
        found.append(encode(topics.INVENTORY, device_key(info.cluster, info.node, info.uid), record))
    return found


def _number(enum: EnumTypeWrapper, prefix: str, name: object) -> int:
    """The enum's number of a lower-case name as the store has it; 0 (unspecified) for what this release does not know."""
    value = enum.DESCRIPTOR.values_by_name.get(prefix + str(name).upper())
    return value.number if value is not None else 0
