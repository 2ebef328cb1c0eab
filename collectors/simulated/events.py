"""Device and context events of the simulated fleet: what the faults put in the log, and what was deployed or restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collectors.simulated.effects import ecc_uncorrected_step
from collectors.simulated.layout import VENDOR, digest
from schemas.identity import service_entity
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.simulated.faults import ActiveFault
    from collectors.simulated.fleet import Fleet
    from collectors.simulated.layout import Device
    from collectors.simulated.timeline import ChangeKind

_Kind = v1.DeviceEventKind
_Severity = v1.Severity
_Entry = tuple[int, v1.DeviceEventKind, v1.Severity, int | None, str]

_CONTEXT: Final[dict[ChangeKind, tuple[v1.ContextEventKind, str]]] = {
    "deploy": (v1.ContextEventKind.CONTEXT_EVENT_KIND_DEPLOY, "a new version was deployed"),
    "restart": (v1.ContextEventKind.CONTEXT_EVENT_KIND_RESTART, "planned restart"),
    "leak": (v1.ContextEventKind.CONTEXT_EVENT_KIND_RESTART, "restarted after it ran out of device memory"),
    "lost": (v1.ContextEventKind.CONTEXT_EVENT_KIND_RESTART, "restarted after its device came back"),
}


def device_events(fleet: Fleet, after: int, until: int) -> Iterator[v1.DeviceEvent]:
    """Events of faults in (after, until]. Ids follow from the content alone."""
    for active in fleet.faults:
        for step, kind, severity, code, text in _entries(active):
            if after < step <= until:
                for card in active.cards:
                    yield _event(fleet, fleet.layout.devices[card], step, kind, severity, code, text)


def _entries(active: ActiveFault) -> tuple[_Entry, ...]:
    """Xid numbers as in NVIDIA's catalogue (analytics reference §3.2): 48 double-bit error, 63 row remap, 74 NVLink, 79 off the bus."""
    fault = active.fault
    start, end = fault.start_seconds, fault.end_seconds
    match fault.name:
        case "device_lost":
            return ((start, _Kind.DEVICE_EVENT_KIND_XID, _Severity.SEVERITY_CRITICAL, 79, "GPU has fallen off the bus"),)
        case "driver_hang":
            return (
                (start, _Kind.DEVICE_EVENT_KIND_HANG, _Severity.SEVERITY_CRITICAL, None, "the driver does not answer"),
                (end, _Kind.DEVICE_EVENT_KIND_RECOVERED, _Severity.SEVERITY_INFO, None, "the driver answers again"),
            )
        case "ecc_burst":
            at = ecc_uncorrected_step(active)
            return (
                (at, _Kind.DEVICE_EVENT_KIND_XID, _Severity.SEVERITY_CRITICAL, 48, "double-bit ECC error"),
                (at, _Kind.DEVICE_EVENT_KIND_XID, _Severity.SEVERITY_WARNING, 63, "row remapping pending; reset the device"),
            )
        case "nvlink_degradation":
            return ((start, _Kind.DEVICE_EVENT_KIND_XID, _Severity.SEVERITY_WARNING, 74, "NVLink error; links went down"),)
        case "thermal" | "thermal_drift" | "cooling_loss" | "power_cap" | "power_brake" | "memory_leak":
            # Only the readings tell: nothing is written to the kernel log.
            return ()
        case "slow_card" | "ghost" | "recovery_pending" | "ecc_growth" | "pcie_replays":
            return ()


def _event(
    fleet: Fleet, device: Device, step: int, kind: v1.DeviceEventKind, severity: v1.Severity, code: int | None, text: str
) -> v1.DeviceEvent:
    at_ns = fleet.time_ns(step)
    return v1.DeviceEvent(
        cluster=device.node.cluster,
        node=device.node.name,
        uid=device.uid,
        source=VENDOR,
        kind=kind,
        at_ns=at_ns,
        severity=severity,
        code=code,
        text=text,
        count=1,
        simulated=True,
        id=digest("device-event", device.uid, int(kind), code, at_ns),
    )


def context_events(fleet: Fleet, after: int, until: int) -> Iterator[v1.ContextEvent]:
    """Deploys and restarts in (after, until], at the moment the old process ends."""
    for service in fleet.services:
        for life in fleet.timeline.between(service.number, after, until):
            if life.closed is None or not after < life.closed <= until:
                continue
            kind, text = _CONTEXT[fleet.timeline.life(service.number, life.closed).kind]
            entity = service_entity(service.cluster, service.namespace, service.name)
            at_ns = fleet.time_ns(life.closed)
            yield v1.ContextEvent(
                entity=entity,
                cluster=service.cluster,
                node=service.node,
                kind=kind,
                at_ns=at_ns,
                text=f"{service.name}-{service.replica} on {service.node}: {text}",
                simulated=True,
                id=digest("context-event", entity, service.node, service.replica, int(kind), at_ns),
            )
