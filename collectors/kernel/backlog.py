"""Marks events that were already old when their lines were read: a broken card must be seen once, yesterday's application need not page.

An old event keeps its severity only where it is critical and nothing that was logged after it ended it; else it becomes information.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from schemas.telemetry import v1

_ENDS: Final = frozenset({v1.DeviceEventKind.DEVICE_EVENT_KIND_RECOVERED, v1.DeviceEventKind.DEVICE_EVENT_KIND_DRIVER_RELOADED})
_CRITICAL: Final = v1.Severity.SEVERITY_CRITICAL


def mark(events: Sequence[v1.DeviceEvent], now_ns: int, fresh_ns: int) -> None:
    """Change the events of one read in place. They get `backlog` and `seen_at_ns` among their details where they are older than
    `fresh_ns` at `now_ns`: who lets an alert last for a time counts from when it was seen."""
    ended: set[str] = set()
    for event in reversed(events):
        if now_ns - max(event.at_ns, event.last_at_ns) <= fresh_ns:
            continue
        event.details["backlog"] = "true"
        event.details["seen_at_ns"] = str(now_ns)
        if event.kind in _ENDS:
            ended.add(event.bdf)
        elif event.bdf in ended or "" in ended:
            event.details["ended"] = "true"
            event.severity = v1.Severity.SEVERITY_INFO
        elif event.severity != _CRITICAL:
            event.severity = v1.Severity.SEVERITY_INFO
