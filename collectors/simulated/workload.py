"""Who holds the simulated cards: workloads and allocation intervals, made from the services' lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collectors.simulated.layout import VENDOR, digest
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.simulated.fleet import Fleet
    from collectors.simulated.services import Service
    from collectors.simulated.timeline import Life
    from schemas.identity import NodeRef

ENDED_KEPT_SECONDS: Final = 900
"""Snapshots tell of intervals that ended this recently (ARCHITECTURE §5)."""


def workload(service: Service, life: Life) -> v1.Workload:
    """A deploy makes a new pod; a restart keeps it."""
    pod_uid = digest("pod", service.cluster, service.node, service.namespace, service.name, service.replica, life.deployed, size=16)
    return v1.Workload(
        namespace=service.namespace,
        pod=f"{service.name}-{service.replica}-{pod_uid[:5]}",
        pod_uid=pod_uid,
        container="server",
        workload=service.name,
        service=service.name,
    )


def allocations(fleet: Fleet, service: Service, life: Life, step: int) -> Iterator[v1.Allocation]:
    """One per card; ended where the life has ended at `step`."""
    holder = workload(service, life)
    started = fleet.time_ns(life.opened)
    for card in service.cards:
        uid = fleet.layout.devices[card].uid
        yield v1.Allocation(
            id=digest("allocation", uid, holder.pod_uid, started),
            device_uid=uid,
            workload=holder,
            started_at_ns=started,
            ended_at_ns=fleet.time_ns(life.closed) if life.closed is not None and life.closed <= step else None,
            share_ratio=1.0,
        )


def open_lives(fleet: Fleet, node: NodeRef, step: int) -> tuple[tuple[int, int], ...]:
    """(service number, start) of what holds cards of the node at `step`: changes exactly when a snapshot's open part does."""
    lives = ((service.number, fleet.timeline.life(service.number, step).opened) for service in fleet.services_on[node])
    return tuple((number, opened) for number, opened in lives if opened <= step)


def snapshot(fleet: Fleet, node: NodeRef, step: int, taken_at_ns: int) -> v1.AllocationSnapshot:
    """The node's full state at `step`, with what ended in the last 15 minutes."""
    found = v1.AllocationSnapshot(cluster=node.cluster, node=node.node, source=VENDOR, taken_at_ns=taken_at_ns, simulated=True)
    for service in fleet.services_on[node]:
        for life in fleet.timeline.between(service.number, step - ENDED_KEPT_SECONDS, step):
            if life.opened <= step:
                ended = life.closed is not None and life.closed <= step
                (found.ended if ended else found.open).extend(allocations(fleet, service, life, step))
    return found


def allocation_changes(fleet: Fleet, after: int, until: int, *, every_open: bool = False) -> Iterator[v1.AllocationChange]:
    """What opened and closed in (after, until]; with `every_open` also the opening of each interval that is open now, however old, so
    that a reader who missed it hears of it (the ids are the same each time)."""
    for service in fleet.services:
        for life in fleet.timeline.between(service.number, after, until):
            closed = life.closed if life.closed is not None and after < life.closed <= until else None
            if after < life.opened <= until or (every_open and life.opened <= until and (life.closed is None or life.closed > until)):
                for allocation in allocations(fleet, service, life, life.opened):
                    yield _change(service, v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_OPENED, allocation.started_at_ns, allocation)
            if closed is not None:
                for allocation in allocations(fleet, service, life, closed):
                    yield _change(service, v1.AllocationChangeKind.ALLOCATION_CHANGE_KIND_CLOSED, allocation.ended_at_ns, allocation)


def _change(service: Service, kind: v1.AllocationChangeKind, at_ns: int, allocation: v1.Allocation) -> v1.AllocationChange:
    return v1.AllocationChange(cluster=service.cluster, node=service.node, kind=kind, at_ns=at_ns, allocation=allocation, simulated=True)
