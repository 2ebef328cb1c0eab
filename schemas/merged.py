"""One row per device: several sources (NVML and a DCGM exporter) may speak of one card, and no consumer may count it twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from schemas.device_state import DeviceState
from schemas.identity import NodeRef, vendor_of


def one_per_device(devices: Iterable[DeviceState]) -> tuple[DeviceState, ...]:
    """The devices, in their order, each once. Of two sources the vendor's own library speaks first; the others add what it does not
    have, and what none has keeps the first one's reason."""
    found: dict[tuple[NodeRef, str], list[DeviceState]] = {}
    for device in devices:
        found.setdefault((device.node, device.uid), []).append(device)
    return tuple(rows[0] if len(rows) == 1 else _one(sorted(rows, key=_rank)) for rows in found.values())


def _rank(device: DeviceState) -> tuple[bool, str]:
    return device.source != vendor_of(device.uid), device.source


def _one(rows: list[DeviceState]) -> DeviceState:
    first, *others = rows
    values, absences, vendor = dict(first.values), dict(first.absences), dict(first.vendor_metrics)
    for other in others:
        values = {**other.values, **values}
        absences = {**other.absences, **absences}
        vendor = {**other.vendor_metrics, **vendor}
    return replace(
        first,
        taken_at_ns=max(row.taken_at_ns for row in rows),
        values=values,
        absences={name: reason for name, reason in absences.items() if name not in values},
        links=next((row.links for row in rows if row.links), ()),
        vendor_metrics=vendor,
        simulated=any(row.simulated for row in rows),
    )
