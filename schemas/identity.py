"""Names of things: device uids, PCI addresses, entities, message keys, and the partition a key belongs to."""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

from schemas.telemetry import v1

INVENTORY_ONLY: Final = frozenset(
    {
        "runtime_version",
        "architecture",
        "compute_capability",
        "minor_number",
        "numa_node",
        "cpu_affinity",
        "peers",
        "virtualization",
        "fabric_cluster_uuid",
        "fabric_clique_id",
        "chassis_serial",
        "tray_index",
        "library_version",
    }
)
"""Fields of DeviceInfo that a sample never carries: they would triple its size (firmware_version and board_part stay out too)."""

_BDF = re.compile(r"^(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.([0-7]))?$")


class NodeRef(NamedTuple):
    """A node within its cluster; two clusters may have equal node names."""

    cluster: str
    node: str

    @property
    def key(self) -> bytes:
        return node_key(self.cluster, self.node)


def device_uid(vendor: str, *, unique: str = "", node: str = "", bdf: str = "") -> str:
    """`<vendor>:<uuid|serial|die id>`, else `<vendor>:<node>:<bdf>`: a BDF alone is not unique in a fleet."""
    if unique:
        return f"{vendor}:{unique}"
    if not node or not bdf:
        raise ValueError(f"{vendor}: a device without uuid or serial needs its node and PCI address")
    return f"{vendor}:{node}:{normal_bdf(bdf)}"


def normal_bdf(text: str) -> str:
    """PCI address as dddd:bb:dd.f, lower case; accepts a missing domain or function and 8-digit domains."""
    match = _BDF.match(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a PCI address (dddd:bb:dd.f)")
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{int(function or '0')}"


def vendor_of(uid: str) -> str:
    return uid.partition(":")[0]


def device_entity(uid: str) -> str:
    return f"device/{uid}"


def node_entity(cluster: str, node: str) -> str:
    return f"node/{cluster}/{node}"


def service_entity(cluster: str, namespace: str, name: str) -> str:
    return f"service/{cluster}/{namespace}/{name}"


def node_key(cluster: str, node: str) -> bytes:
    return f"{cluster}/{node}".encode()


def place_key(node: NodeRef, entity: str) -> bytes:
    """Of what is about an entity: its node where it has one, so that who watches the node hears of it; else the entity itself."""
    return node.key if node.node else entity.encode()


def device_key(cluster: str, node: str, uid: str) -> bytes:
    return f"{cluster}/{node}/{uid}".encode()


def finding_key(rule: str, entity: str) -> bytes:
    return f"{rule}+{entity}".encode()


def fingerprint(rule: str, cluster: str, entity: str) -> str:
    """Identity of an alert, 16 hex digits of blake2b; the parts are length-prefixed so that no two triples collide by joining."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (rule, cluster, entity):
        raw = part.encode()
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return digest.hexdigest()


def complete_info(batch: v1.SampleBatch, sample: v1.DeviceSample) -> v1.DeviceInfo:
    """The DeviceInfo of a full sample with what the sample and the batch say put back."""
    info = v1.DeviceInfo()
    info.CopyFrom(sample.info)
    info.uid = sample.uid
    info.vendor = info.vendor or vendor_of(sample.uid)
    info.index = sample.index
    info.driver_version = info.driver_version or batch.driver_version
    info.cluster, info.node, info.simulated = batch.cluster, batch.node, batch.simulated
    return info


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 with seed 0x9747b28c, as Java's DefaultPartitioner hashes keys."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    length = len(data)
    h = 0x9747B28C ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if tail := data[whole:]:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """The partition that every producer of ours (partitioner=murmur2_random) puts this key in."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
