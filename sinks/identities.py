"""Kind and model of every device seen: they are tags of each point, but travel only in full samples and on the compacted inventory.

A series' tag set must not change with what a sink happens to remember, or a replay would write other points. So identity is
keyed state: it comes from `xpulse.inventory` (read to its end when partitions are assigned) and from the full samples of the batch at
hand, later ones included, and a point is made only when it is known. The agent publishes inventory with its first batch, and the first
sample of an epoch is full, so an unknown device means that inventory is late or lost. Then, in this order: inventory is read
again; the batch waits (Busy), a bounded number of times; at last its points are written with kind and model `unknown`, counted.
That choice is remembered until the identity is known, so that one lost device never stops the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.codec import decode
from schemas.flow import Rejected
from schemas.telemetry import v1
from schemas.topics import INVENTORY
from schemas.values import name_of
from sinks.points import tag

if TYPE_CHECKING:
    from schemas.flow import Reader

UNKNOWN: Final = "unknown"


class Device(NamedTuple):
    """A device within its cluster and node."""

    cluster: str
    node: str
    uid: str


class Identity(NamedTuple):
    """The two tags that only full samples carry; `unknown` where the source does not say."""

    kind: str
    model: str


class Identities:
    """Memory: about 300 bytes a device. `unreadable` counts inventory records that could not be decoded.

    `version` changes whenever an answer of `of` may have changed, so that its users can remember answers.
    """

    def __init__(self) -> None:
        self._known: dict[Device, Identity] = {}
        self._given_up: set[Device] = set()
        self._reader: Reader | None = None
        self.unreadable = 0
        self.version = 0

    def restore(self, reader: Reader) -> None:
        """Read inventory to its end; what is no longer listed is forgotten. Its key has the uid, so every partition is read."""
        self._known = {}
        self._given_up = set()
        self._reader = reader
        self.version += 1
        self.read_again()

    def read_again(self) -> None:
        """Read inventory once more (nothing before the first restore)."""
        if self._reader is None:
            return
        for partition in range(self._reader.partitions(INVENTORY)):
            for record in self._reader.read(INVENTORY, partition):
                try:
                    message = decode(record)
                except Rejected:
                    self.unreadable += 1
                    continue
                # A tombstone is not followed: points of a device that left are still being written.
                if isinstance(message, v1.InventoryRecord) and message.HasField("device"):
                    info = message.device
                    self.learn(Device(info.cluster, info.node, info.uid), info)

    def learn(self, device: Device, info: v1.DeviceInfo) -> None:
        """Take what a full sample or an inventory record says."""
        kind = name_of(v1.DeviceKind.DESCRIPTOR, info.kind) if info.kind else UNKNOWN
        identity = Identity(kind, tag(info.model) or UNKNOWN)
        if self._known.get(device) != identity:
            self._known[device] = identity
            self._given_up.discard(device)
            self.version += 1

    def of(self, device: Device) -> Identity | None:
        """The identity; Identity("unknown", "unknown") after `give_up`, None where it must be waited for."""
        found = self._known.get(device)
        if found is None and device in self._given_up:
            return Identity(UNKNOWN, UNKNOWN)
        return found

    def give_up(self, device: Device) -> None:
        """Wait no longer for this one."""
        self._given_up.add(device)
        self.version += 1
