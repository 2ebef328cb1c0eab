"""Builds findings for the alert tests: rule hot on device/d0 of node n1 in cluster c, seconds instead of nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence

from schemas import topics
from schemas.codec import encode
from schemas.flow import Barrier, Emitted, Out, Record
from schemas.identity import finding_key, fingerprint
from schemas.telemetry import v1
from streams.operators.alert import Lifecycle

S = 1_000_000_000
T0 = 1_700_000_000 * S
RULES = Lifecycle(keep_firing_ns=0, grace_ns=5 * S, save_ns=15 * S, remembered=1000)
SEVERITY = v1.Severity.SEVERITY_WARNING


def at(seconds: float) -> int:
    return T0 + round(seconds * S)


def finding(
    observed: float,
    active: bool = True,
    *,
    since: float | None = None,
    value: float | None = None,
    hold: float = 0,
    clear: float = 0,
    valid: float = 45,
    entity: str = "device/d0",
    mode: v1.AlertMode = v1.AlertMode.ALERT_MODE_NOTIFY,
    rule: str = "hot",
    node: str = "n1",
    severity: v1.Severity = SEVERITY,
    owner: str = "",
    metric: str = "",
    **evidence: str,
) -> v1.Finding:
    made = v1.Finding(
        rule=rule,
        cluster="c",
        node=node,
        entity=entity,
        kind=v1.FindingKind.FINDING_KIND_THRESHOLD,
        active=active,
        severity=severity,
        metric=metric,
        evidence=evidence,
        observed_at_ns=at(observed),
        valid_until_ns=at(observed + valid),
        hold_ns=round(hold * S),
        clear_ns=round(clear * S),
        limit=90,
        summary="too hot" if active else "",
        mode=mode,
    )
    if owner:
        made.owner.CopyFrom(v1.Workload(namespace="serving", workload=owner))
    if since is not None:
        made.since_ns = at(since)
    if value is not None:
        made.value = value
    return made


def name(entity: str = "device/d0") -> str:
    return fingerprint("hot", "c", entity)


def record(message: v1.Finding, offset: int) -> Record:
    out = encode(topics.FINDINGS, finding_key(message.rule, message.entity), message)
    return Record(topics.FINDINGS, 0, offset, out.key, out.value, out.headers, message.observed_at_ns)


def told(emitted: Sequence[Emitted]) -> list[str]:
    """Outs in short: `state pending`, `state firing (owed)`, `| ` for a barrier, `FIRING`, `RESOLVED recovered`, `gone`."""
    return [_told(one) for one in emitted]


def _told(one: Emitted) -> str:
    if isinstance(one, Barrier):
        return "|"
    if not isinstance(one, Out):
        return "dead letter"
    if one.topic == topics.ALERTS:
        return _status(v1.Alert.FromString(one.value or b"").status).upper()
    if one.value is None:
        return "gone"
    state = v1.AlertState.FromString(one.value)
    return f"state {_status(state.alert.status)}{' (owed)' if state.unpublished else ''}"


def _status(status: v1.AlertStatus) -> str:
    return v1.AlertStatus.Name(status).removeprefix("ALERT_STATUS_").lower()


def alerts(emitted: Sequence[Emitted]) -> list[v1.Alert]:
    return [v1.Alert.FromString(o.value or b"") for o in emitted if isinstance(o, Out) and o.topic == topics.ALERTS]
