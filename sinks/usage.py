"""Makes the points of an AttributedBatch, one tick in ten seconds; who holds a device changes seldom, so its part of a point is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sinks.flatten import INT63, flatten
from sinks.measurements import MEASUREMENTS
from sinks.points import Point, checked_time, sane, tag

if TYPE_CHECKING:
    from schemas.store import Scalar
    from schemas.telemetry import v1

USAGE_EVERY_NS: Final = 10_000_000_000
MOST_HOLDERS: Final = 50_000
"""Holders kept before the memory starts again, about 60 MB."""

_COLUMNS: Final = MEASUREMENTS["usage"].columns["Attributed"]
_TEXTS: Final = tuple(c for c in _COLUMNS if c.type == "string")
_NUMBERS: Final = tuple(c for c in _COLUMNS if c.type != "string")

_Tags = tuple[str, ...]
_Fields = dict[str, "Scalar"]


def stored(sequence: int, interval_ns: int) -> bool:
    """Whether a batch's usage is stored: one in ten seconds by count, decided from the message alone, so a replay decides the same.

    A count, because a read that comes a little late must not make ten seconds go without a point. Without a known interval: each.
    """
    every = max(1, round(USAGE_EVERY_NS / interval_ns)) if interval_ns > 0 else 1
    return sequence % every == 0


class UsagePoints:
    """Turns batches into points; remembers tags and texts of each holder of a device."""

    def __init__(self) -> None:
        self._holders: dict[tuple[object, ...], tuple[_Tags, _Fields]] = {}

    def points(self, batch: v1.AttributedBatch) -> list[Point]:
        """One point per device and workload. Raises Rejected for a time no store can hold."""
        if not stored(batch.sequence, batch.interval_ns):
            return []
        time_ns = checked_time(batch.taken_at_ns)
        same: dict[_Tags, _Fields] = {}
        cluster, node = batch.cluster, batch.node
        for row in batch.rows:
            tags, texts = self._holder(cluster, node, row)
            fields = texts | sane(flatten(_NUMBERS, row))
            if (first := same.get(tags)) is not None:
                fields = _together(first, fields)
            same[tags] = fields
        head: _Fields = {"seq": min(batch.sequence, INT63), "epoch": min(batch.agent_epoch, INT63), "simulated": batch.simulated}
        return [Point("usage", tags, head | fields, time_ns) for tags, fields in same.items()]

    def _holder(self, cluster: str, node: str, row: v1.Attributed) -> tuple[_Tags, _Fields]:
        key = (cluster, node, row.uid, row.owner_state, row.allocation_id, row.workload.SerializeToString())
        if (found := self._holders.get(key)) is None:
            if len(self._holders) >= MOST_HOLDERS:
                self._holders.clear()
            tags = (tag(cluster), tag(node), tag(row.uid), tag(row.workload.namespace), tag(row.workload.workload))
            found = self._holders[key] = (tags, flatten(_TEXTS, row))
        return found


def _together(one: _Fields, other: _Fields) -> _Fields:
    """Two pods of one workload on one device are one series: quantities are added, names listed."""
    both = one | other
    for name in one.keys() & other.keys():
        a, b = one[name], other[name]
        if isinstance(a, str) or isinstance(b, str):
            both[name] = ",".join(sorted({*str(a).split(","), *str(b).split(",")}))
        else:
            total = a + b
            both[name] = min(total, INT63) if isinstance(total, int) else total
    return both
