"""Understands what a card says of itself: the DeviceInfo that inventory and full samples carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from collectors.nvidia.reply import Failed, Replies, Reply
from schemas.identity import device_uid, normal_bdf
from schemas.telemetry import v1

_ARCHITECTURE: Final = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
"""nvmlDeviceArchitecture_t."""
_VIRTUALIZATION: Final = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
"""nvmlGpuVirtualizationMode_t."""
_PATH: Final = {
    0: v1.TopologyPath.TOPOLOGY_PATH_INTERNAL,
    10: v1.TopologyPath.TOPOLOGY_PATH_SINGLE_SWITCH,
    20: v1.TopologyPath.TOPOLOGY_PATH_MULTIPLE_SWITCHES,
    30: v1.TopologyPath.TOPOLOGY_PATH_HOST_BRIDGE,
    40: v1.TopologyPath.TOPOLOGY_PATH_NUMA_NODE,
    50: v1.TopologyPath.TOPOLOGY_PATH_SYSTEM,
}
"""nvmlGpuTopologyLevel_t."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Of the driver's parts; replies as NVML has them."""

    driver: str = ""
    library: str = ""
    cuda: Reply = field(default_factory=lambda: Failed(3))


def device_info(replies: Replies, node: str, index: int, versions: Versions | None = None) -> v1.DeviceInfo | None:
    """Identity and constants; None where neither uuid nor PCI address can be read, so that nothing would be told apart."""
    try:
        bdf = normal_bdf(_told(replies, "bdf"))
    except ValueError:
        bdf = ""
    if not _told(replies, "uuid") and not bdf:
        return None
    found = v1.DeviceInfo(
        uid=device_uid("nvidia", unique=_told(replies, "uuid"), node=node, bdf=bdf),
        vendor="nvidia",
        model=_told(replies, "name"),
        serial=_told(replies, "serial"),
        kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR,
        index=index,
        bdf=bdf,
        firmware_version=_told(replies, "vbios"),
        board_part=_told(replies, "board_part"),
        compute_capability=_told(replies, "compute_capability"),
        cpu_affinity=_told(replies, "cpu_affinity"),
        chassis_serial=_told(replies, "chassis_serial"),
        architecture=_ARCHITECTURE.get(_number(replies, "architecture", -1), ""),
        virtualization=_VIRTUALIZATION.get(_number(replies, "virtualization", -1), ""),
    )
    if versions is not None:
        found.library_version = versions.library
        found.runtime_version = cuda_version(versions.cuda)
    limit, minor, numa, tray = (_number(replies, name, -1) for name in ("power_limit_max_milliwatts", "minor_number", "numa_node", "tray"))
    if limit >= 0:
        found.power_limit_max_watts = limit / 1000
    if minor >= 0:
        found.minor_number = minor
    if numa >= 0:
        found.numa_node = numa
    if tray >= 0 and found.chassis_serial:
        found.tray_index = tray
    slot = _number(replies, "slot", -1) if found.chassis_serial else -1
    module = _number(replies, "module", -1)
    if slot >= 0 or module >= 0:
        found.slot = str(slot if slot >= 0 else module)
    return found


def set_fabric(info: v1.DeviceInfo, replies: Replies) -> None:
    """The fabric's domain and its part, once the card has joined it."""
    cluster: Any = replies.get("fabric_cluster")
    clique = replies.get("fabric_clique")
    raw = b"" if cluster is None or isinstance(cluster, Failed) else bytes(cluster)
    if replies.get("fabric_state") != 3 or not any(raw):
        info.ClearField("fabric_cluster_uuid")
        info.ClearField("fabric_clique_id")
        return
    digits = raw.hex()
    info.fabric_cluster_uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    if isinstance(clique, int):
        info.fabric_clique_id = clique


def set_peers(info: v1.DeviceInfo, levels: Mapping[str, int], links: Mapping[str, int]) -> None:
    """How near each other card of the node is (nvmlGpuTopologyLevel_t), and the direct links to it."""
    del info.peers[:]
    for uid, level in sorted(levels.items()):
        info.peers.add(uid=uid, path=_PATH.get(level, v1.TopologyPath.TOPOLOGY_PATH_UNSPECIFIED), links=links.get(uid, 0))


def cuda_version(reply: Reply) -> str:
    """13010 is 13.1."""
    return f"{reply // 1000}.{reply % 1000 // 10}" if isinstance(reply, int) and reply > 0 else ""


def _told(replies: Replies, name: str) -> str:
    reply = replies.get(name)
    return reply if isinstance(reply, str) else ""


def _number(replies: Replies, name: str, otherwise: int) -> int:
    """The reply where it is a number; all ones is none."""
    reply = replies.get(name)
    return reply if isinstance(reply, int) and reply < 0xFFFFFFFF else otherwise
