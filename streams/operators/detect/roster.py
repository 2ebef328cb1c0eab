"""Which nodes the inventory took off its list, and whether what is read now was said before that: then it brings no node back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from schemas.identity import node_key
from streams.operators.detect.findings import finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from schemas.flow import Record
    from schemas.telemetry import v1
    from streams.operators.detect.fleet import Device
    from streams.operators.detect.levels import Levels
    from streams.operators.detect.samples import Samples

MOST_GONE: Final = 10_000
"""Forgotten nodes that are remembered as such, newest last. An older one comes back only by a record that lagged behind for longer."""


class Removed(NamedTuple):
    """A node (uid empty) or one device of it was taken off the inventory at `at_ns`, the broker's time."""

    cluster: str
    node: str
    uid: str
    at_ns: int


@dataclass(slots=True)
class Roster:
    """What the last restore read: the last offset of each partition, and keys that are listed again after a deletion.

    `gone` maps the keys of deleted nodes to the time of it.
    """

    upto: Mapping[int, int] = field(default_factory=dict)
    again: Set[bytes] = frozenset()
    gone: dict[bytes, int] = field(default_factory=dict)

    def known(self, record: Record) -> bool:
        """Whether a restore took in what this record of the inventory says; of a deletion that still holds only half of it is done:
        what stood of the node has to be ended."""
        if record.offset > self.upto.get(record.partition, -1):
            return False
        return record.value is not None or record.key in self.again

    def removed(self, record: Record) -> Removed | None:
        """Take a deletion in; None where its key is none of ours."""
        cluster, _, rest = (record.key or b"").decode("utf-8", "replace").partition("/")
        node, _, uid = rest.partition("/")
        if not cluster or not node:
            return None
        if not uid:
            self.note_gone(node_key(cluster, node), record.timestamp_ns)
        return Removed(cluster, node, uid, record.timestamp_ns)

    def note_gone(self, key: bytes, at_ns: int) -> None:
        self.gone[key] = max(at_ns, self.gone.pop(key, 0))
        if len(self.gone) > MOST_GONE:
            del self.gone[next(iter(self.gone))]

    def is_past(self, cluster: str, node: str, at_ns: int) -> bool:
        """Whether something of the node that reached the bus at `at_ns` did so before the node was taken off the list."""
        return bool(self.gone) and at_ns <= self.gone.get(node_key(cluster, node), -1)


def ended(levels: Levels, cluster: str, node: str, at_ns: int, entity: str = "") -> list[v1.Finding]:
    """The ends of what stands of a node, or of one entity of it."""
    keys = [k for k, v in levels.active.items() if k.cluster == cluster and v.finding.node == node and (not entity or k.entity == entity)]
    return [f for key in keys for f in levels.cleared(key, at_ns)]


def ended_samples(state: Samples, devices: Iterable[Device], at_ns: int) -> list[v1.Finding]:
    """The ends of what stands of devices by their samples; their rows are left to be given back."""
    found = []
    for device in devices:
        for r in np.flatnonzero(state.table["active"][device.row]):
            rule, last_ns = state.plan.rules[r], int(state.table["emitted_ns"][device.row, r])
            end_ns = max(at_ns, last_ns + 1)
            since_ns = int(state.table["since_ns"][device.row, r])
            valid_ns = end_ns + state.times.valid_ns
            found.append(finding(rule, state.about(device), active=False, at_ns=end_ns, since_ns=since_ns, valid_until_ns=valid_ns))
    return found
