"""An alert as JSON for people's own tools: snake_case keys, each time as RFC 3339 and as ns, the same bytes for the same alert."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from schemas.telemetry import v1
from schemas.values import name_of

_TIMES: Final = ("started_at_ns", "fired_at_ns", "resolved_at_ns", "at_ns", "acknowledged_at_ns")
_TEXTS: Final = ("rule", "cluster", "node", "entity", "metric", "unit", "summary", "acknowledged_by", "runbook", "evidence_ref", "incident")
_ENUMS: Final = ("status", "kind", "severity", "mode", "verdict", "resolve_reason")


def alert_document(alert: v1.Alert) -> dict[str, Any]:
    """What is known of a transition; a key that is not there was not said. `simulated` and `mode` always are."""
    found: dict[str, Any] = {"fingerprint": alert.fingerprint, "episode": alert.episode}
    for name in _ENUMS:
        number = getattr(alert, name)
        if number:
            found[name] = name_of(v1.Alert.DESCRIPTOR.fields_by_name[name].enum_type, number)  # type: ignore[arg-type]  # an enum field has one
    found["mode"] = found.get("mode", "notify")
    found["simulated"] = alert.simulated
    found |= {name: text for name in _TEXTS if (text := getattr(alert, name))}
    for name in _TIMES:
        if time_ns := getattr(alert, name):
            found[name] = time_ns
            found[name.removesuffix("_ns")] = rfc3339(time_ns)
    for name in ("value", "limit"):
        if alert.HasField(name) and isfinite(number := getattr(alert, name)):
            found[name] = number
    if alert.evidence:
        found["evidence"] = dict(alert.evidence)
    if alert.link:
        found["links"] = list(alert.link)
    if alert.HasField("owner"):
        owner = {f.name: value for f, value in alert.owner.ListFields()}
        if owner:
            found["owner"] = owner
    return found


def encode(document: dict[str, Any]) -> bytes:
    """Sorted keys, no spaces, UTF-8. JSON escapes control characters, so the text is one line."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def transition_id(alert: v1.Alert) -> str:
    """The same for every copy of one transition: the episode (fingerprint and start) and the status."""
    return f"{alert.episode}-{name_of(v1.AlertStatus.DESCRIPTOR, alert.status)}"


def rfc3339(time_ns: int) -> str:
    """UTC with nine digits. Exact: no float in between."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
