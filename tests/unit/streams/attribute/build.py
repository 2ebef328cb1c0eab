"""Builds the messages of the attribute tests: node n1 of cluster c, devices by uid, seconds instead of nanoseconds."""

from __future__ import annotations

from schemas import topics
from schemas.codec import encode
from schemas.flow import Record
from schemas.identity import node_key
from schemas.telemetry import v1

S = 1_000_000_000
T0 = 1_700_000_000 * S


def at(seconds: float) -> int:
    return T0 + round(seconds * S)


def batch(taken: float, *uids: str, node: str = "n1", sequence: int = 0, energy: float | None = None, boot: str = "b1") -> v1.SampleBatch:
    made = v1.SampleBatch(
        cluster="c", node=node, source="sim", agent_epoch=1, sequence=sequence, taken_at_ns=at(taken), boot_id=boot, interval_ns=S
    )
    for uid in uids or ("d0",):
        device = made.devices.add(uid=uid, utilization_ratio=0.5, memory_used_bytes=1000, power_watts=300.0)
        if energy is not None:
            device.energy_joules = energy
    return made


def allocation(pod: str, started: float, ended: float | None = None, *, uid: str = "d0", share: float | None = None) -> v1.Allocation:
    made = v1.Allocation(id=f"{pod}-{uid}", device_uid=uid, started_at_ns=at(started))
    made.workload.pod = pod
    if ended is not None:
        made.ended_at_ns = at(ended)
    if share is not None:
        made.share_ratio = share
    return made


def snapshot(taken: float, *allocations: v1.Allocation, node: str = "n1") -> v1.AllocationSnapshot:
    made = v1.AllocationSnapshot(cluster="c", node=node, source="sim", taken_at_ns=at(taken))
    for one in allocations:
        (made.ended if one.HasField("ended_at_ns") else made.open).append(one)
    return made


def record(message: v1.SampleBatch | v1.AllocationSnapshot, offset: int = 0, arrived: float | None = None) -> Record:
    name = topics.SAMPLES if isinstance(message, v1.SampleBatch) else topics.ALLOCATIONS
    out = encode(name, node_key(message.cluster, message.node), message)
    arrived_at_ns = message.taken_at_ns if arrived is None else at(arrived)
    return Record(name, 0, offset, out.key, out.value, out.headers, arrived_at_ns)
