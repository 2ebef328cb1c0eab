"""Where the simulated cards sit: clusters, racks, nodes and devices, with names that follow from the seed alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from schemas.identity import NodeRef
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collectors.simulated.settings import Simulated

VENDOR: Final = "simulated"
DRIVER_VERSION: Final = "simulated-1"

# PCI buses of an eight-card HGX board are not contiguous; beyond eight cards they are simply counted on.
_BUSES: Final = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A node and where it stands."""

    cluster: str
    name: str
    rack: str
    pdu: str
    boot_id: str
    serial: str

    @property
    def ref(self) -> NodeRef:
        return NodeRef(self.cluster, self.name)

    def info(self, agent_version: str) -> v1.NodeInfo:
        return v1.NodeInfo(
            cluster=self.cluster,
            node=self.name,
            host_serial=self.serial,
            labels={"rack": self.rack, "pdu": self.pdu, "pool": "inference", "site": "simulated"},
            boot_id=self.boot_id,
            agent_version=agent_version,
            kernel="simulated",
            simulated=True,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A card. `number` is its position in the fleet's arrays, `index` its number on the node; `info` leaves out what the batch says."""

    number: int
    index: int
    node: Place
    uid: str
    info: v1.DeviceInfo


@dataclass(frozen=True, slots=True)
class Layout:
    nodes: tuple[Place, ...]
    devices: tuple[Device, ...]
    by_node: tuple[tuple[Device, ...], ...] = field(repr=False)
    """`by_node[i]` are the devices of `nodes[i]`."""


def digest(*parts: object, size: int = 8) -> str:
    """Hex digest of the parts, length-prefixed: the one source of stable names and event ids in the simulator."""
    hashed = hashlib.blake2b(digest_size=size)
    for part in parts:
        raw = str(part).encode()
        hashed.update(len(raw).to_bytes(4, "big") + raw)
    return hashed.hexdigest()


def lay_out(settings: Simulated, clusters: Sequence[str], started_at_ns: int) -> Layout:
    """The fleet's places. Uids, serials and addresses depend on seed, cluster, node and index only; the boot id also on the start of
    the scenario, because counters begin anew with it."""
    nodes: list[Place] = []
    devices: list[Device] = []
    for cluster in clusters:
        for i in range(settings.nodes):
            name = f"{settings.node_prefix}{i + 1}"
            rack = i // settings.nodes_per_rack
            node = Place(
                cluster=cluster,
                name=name,
                rack=f"r{rack + 1}",
                pdu=f"pdu{rack // settings.racks_per_pdu + 1}",
                boot_id=digest("boot", settings.seed, cluster, name, started_at_ns, size=16),
                serial="SIM" + digest("host", settings.seed, cluster, name, size=5).upper(),
            )
            nodes.append(node)
            devices += [_device(settings, node, len(devices) + k, k) for k in range(settings.devices_per_node)]
    return Layout(tuple(nodes), tuple(devices), tuple(tuple(d for d in devices if d.node is node) for node in nodes))


def _device(settings: Simulated, node: Place, number: int, index: int) -> Device:
    unique = digest("device", settings.seed, node.cluster, node.name, index, size=6)
    chip = settings.chip
    info = v1.DeviceInfo(
        model=chip.name,
        serial="SN" + digest("serial", unique, size=5).upper(),
        kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR,
        bdf=f"0000:{_BUSES[index] if index < len(_BUSES) else 0x20 + index:02x}:00.0",
        slot=f"module-{index + 1}",
        # Half of a fleet is usually one firmware behind the other.
        firmware_version="sim-1.1" if int(unique[:2], 16) % 2 else "sim-1.0",
        board_part="SIM-BOARD-1",
        power_limit_max_watts=chip.power_limit_watts,
    )
    return Device(number, index, node, f"{VENDOR}:{unique}", info)
