"""Messages for the stores' tests, made as the agent makes them: samples through SampleBuilder, batches with one full sample first."""

from __future__ import annotations

from google.protobuf.message import Message

from schemas import topics
from schemas.builder import SampleBuilder
from schemas.codec import encode
from schemas.flow import Record
from schemas.telemetry import v1
from schemas.values import Reason

SECOND_NS = 1_000_000_000


def sample(uid: str, *, full: bool = False, absent: dict[str, Reason] | None = None, **values: float) -> v1.DeviceSample:
    """One device; a full sample says that it is an H200."""
    builder = SampleBuilder(uid, index=3)
    for name, value in values.items():
        builder.set(name, value)
    for name, reason in (absent or {}).items():
        builder.absent(name, reason)
    if full:
        builder.info(v1.DeviceInfo(model="NVIDIA H200", kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR, serial="165", bdf="0000:1b:00.0"))
    found = builder.build()
    found.full = full
    return found


def batch(at_ns: int, *samples: v1.DeviceSample, sequence: int = 1, cluster: str = "c1", node: str = "n1") -> v1.SampleBatch:
    """A tick of one node."""
    return v1.SampleBatch(
        cluster=cluster,
        node=node,
        source="simulated",
        agent_epoch=77,
        sequence=sequence,
        taken_at_ns=at_ns,
        sent_at_ns=at_ns,
        boot_id="boot",
        driver_version="580.1",
        interval_ns=SECOND_NS,
        devices=samples,
    )


def inventory(uid: str, *, cluster: str = "c1", node: str = "n1", model: str = "NVIDIA H200") -> v1.InventoryRecord:
    """What the compacted topic holds of a device."""
    info = v1.DeviceInfo(uid=uid, cluster=cluster, node=node, model=model, kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR)
    return v1.InventoryRecord(observed_at_ns=1, device=info)


def record(topic: str, message: Message, offset: int = 0) -> Record:
    """A message as the bus gives it."""
    out = encode(topic, b"key", message)
    return Record(topic, 0, offset, out.key, out.value, out.headers, 0)


def allocation(
    kind: v1.AllocationChangeKind, started_ns: int, *, identity: str, ended_ns: int | None = None, uid: str = "nvidia:a"
) -> v1.AllocationChange:
    """A workload takes or leaves a device."""
    held = v1.Allocation(id=identity, device_uid=uid, started_at_ns=started_ns)
    held.workload.CopyFrom(v1.Workload(namespace="prod", pod=f"chat-{identity}", workload="chat"))
    if ended_ns is not None:
        held.ended_at_ns = ended_ns
    return v1.AllocationChange(cluster="c1", node="n1", kind=kind, at_ns=ended_ns or started_ns, allocation=held)


def samples(*batches: v1.SampleBatch) -> list[Record]:
    """Batches as records of xpulse.samples."""
    return [record(topics.SAMPLES, one, offset) for offset, one in enumerate(batches)]
