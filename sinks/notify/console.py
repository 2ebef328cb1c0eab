"""The console channel: one readable line per notification, in the reader's time zone, safe for a terminal."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from schemas.telemetry import v1
from schemas.values import name_of
from sinks.text import clean

if TYPE_CHECKING:
    from typing import TextIO

_MOST = 400


class Console:
    """A Channel on a text stream; `zone` None is the machine's own."""

    name = "console"

    def __init__(self, stream: TextIO, zone: tzinfo | None = None) -> None:
        self._stream = stream
        self._zone = zone

    def deliver(self, alert: v1.Alert, members: int = 1) -> None:
        """Write the line at once."""
        self._stream.write(line(alert, self._zone, members) + "\n")
        self._stream.flush()


def line(alert: v1.Alert, zone: tzinfo | None = None, members: int = 1) -> str:
    """Time, status, severity, rule, entity, summary, value against limit, owner, how many alerts its incident has had, and whether it is
    simulated or its signal was lost."""
    at = datetime.fromtimestamp(alert.at_ns // 1_000_000_000, zone).astimezone(zone)
    words = [
        f"{at:%Y-%m-%d %H:%M:%S%z}",
        name_of(v1.AlertStatus.DESCRIPTOR, alert.status).upper(),
        name_of(v1.Severity.DESCRIPTOR, alert.severity) if alert.severity else "",
        alert.rule,
        alert.entity,
        alert.summary,
    ]
    if alert.HasField("value"):
        against = f", limit {alert.limit:g}" if alert.HasField("limit") else ""
        words.append(f"({alert.value:g}{against}{f' {alert.unit}' if alert.unit not in ('', '1') else ''})")
    if alert.owner.workload:
        words.append(f"owner {alert.owner.namespace}/{alert.owner.workload}")
    if members > 1:
        words.append(f"[{members} alerts in this incident]")
    if alert.resolve_reason == v1.ResolveReason.RESOLVE_REASON_SIGNAL_LOST:
        words.append("[signal lost: nobody can say that it is over]")
    if alert.simulated:
        words.append("[simulated]")
    return clean("  ".join(word for word in words if word), _MOST)
