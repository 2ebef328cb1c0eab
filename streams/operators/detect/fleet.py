"""Which nodes and devices this process watches: node by cluster and name, device by node and uid, each device with its row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.operators.detect.table import Table


@dataclass(slots=True)
class Device:
    """A device in a node's slot; `row` is its row in the table of series. `whole`: an accelerator, and no partition of one."""

    node: Node
    uid: str
    row: int
    index: int | None = None
    model: str = ""
    whole: bool = True


@dataclass(slots=True)
class Node:
    """`taken` is the newest (agent epoch, sequence) of each source: what is at or below it was already evaluated; `newest_ns` its time."""

    cluster: str
    name: str
    simulated: bool = False
    devices: dict[str, Device] = field(default_factory=dict)
    taken: dict[str, tuple[int, int]] = field(default_factory=dict)
    newest_ns: dict[str, int] = field(default_factory=dict)


def is_whole(info: v1.DeviceInfo) -> bool:
    """Whether it is an accelerator by itself."""
    return not info.parent_uid and info.kind in (v1.DeviceKind.DEVICE_KIND_UNSPECIFIED, v1.DeviceKind.DEVICE_KIND_ACCELERATOR)


class Fleet:
    """Nodes of all owned partitions. Equal node names, and uids made from them, in two clusters stay apart."""

    def __init__(self, table: Table) -> None:
        self.nodes: dict[tuple[str, str], Node] = {}
        self._table = table

    def node(self, cluster: str, name: str) -> Node:
        """The node, made where it is new."""
        key = (cluster, name)
        node = self.nodes.get(key)
        if node is None:
            node = self.nodes[key] = Node(cluster, name)
        return node

    def device(self, node: Node, uid: str) -> Device:
        """The device, made where it is new."""
        device = node.devices.get(uid)
        if device is None:
            device = node.devices[uid] = Device(node, uid, self._table.new_row())
        return device

    def find(self, cluster: str, name: str, uid: str) -> Device | None:
        node = self.nodes.get((cluster, name))
        return None if node is None else node.devices.get(uid)

    def forget(self, cluster: str, name: str) -> None:
        """Drop a node with all its devices."""
        node = self.nodes.pop((cluster, name), None)
        if node is not None:
            self._table.forget(d.row for d in node.devices.values())

    def forget_device(self, device: Device) -> None:
        """Drop one device."""
        if device.node.devices.pop(device.uid, None) is not None:
            self._table.forget([device.row])

    def devices(self) -> Iterator[Device]:
        for node in self.nodes.values():
            yield from node.devices.values()
