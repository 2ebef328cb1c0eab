"""Takes a node off the inventory: what is listed of it, whether it still reports, and the deletions that end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from schemas.codec import decode, tombstone
from schemas.flow import Rejected
from schemas.identity import NodeRef, partition_of
from schemas.telemetry import v1
from schemas.topics import INVENTORY, SAMPLES

if TYPE_CHECKING:
    from schemas.flow import Out, Reader


class Listed(NamedTuple):
    """What the inventory holds: the nodes, and the keys of all that is listed of the one that was asked for, its own last."""

    nodes: set[NodeRef]
    keys: list[bytes]


def listed(reader: Reader, asked: NodeRef) -> Listed:
    """Read the inventory to its end; what cannot be read is listed by its key alone."""
    found: dict[bytes, NodeRef | None] = {}
    for partition in range(reader.partitions(INVENTORY)):
        for record in reader.read(INVENTORY, partition):
            key = record.key or b""
            if record.value is None:
                found.pop(key, None)
                continue
            try:
                message = decode(record)
            except Rejected:
                found.setdefault(key, None)
                continue
            assert isinstance(message, v1.InventoryRecord)  # the topic's message
            said = message.device if message.HasField("device") else message.node
            found[key] = NodeRef(said.cluster, said.node)
    own = asked.key
    keys = [key for key, ref in found.items() if ref == asked or key == own or key.startswith(own + b"/")]
    return Listed({ref for ref in found.values() if ref is not None}, sorted(keys, key=lambda key: key == own))


def deletions(keys: list[bytes]) -> list[Out]:
    """In the order of the keys: the node's own comes last, so that it is forgotten only when nothing lists a device of it any more."""
    return [tombstone(INVENTORY, key) for key in keys]


def last_heard_ns(reader: Reader, node: NodeRef, since_ns: int) -> int | None:
    """When, by the broker, the newest samples of the node came; None where none did since `since_ns`."""
    partition = partition_of(node.key, reader.partitions(SAMPLES))
    return max((r.timestamp_ns for r in reader.read(SAMPLES, partition, since_ns=since_ns) if r.key == node.key), default=None)
