"""Splits what was read into rounds in which no node comes twice, and says which devices end a point and can be compared there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streams.operators.detect.columns import rounds
from streams.operators.detect.held import Ended
from streams.operators.detect.peers import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from schemas.telemetry import v1
    from streams.operators.detect.columns import Columns
    from streams.operators.detect.fleet import Device, Node

    Positions = NDArray[np.intp]


def by_node(columns: Columns) -> list[Positions]:
    """Rounds of positions: rows are distinct in each, each node's batches keep their order, and a batch stays whole.

    Only of a device that is in one batch twice the later sample comes in a round of its own.
    """
    if columns.batch is None or len(columns.batch) == 0:
        return rounds(columns.rows)
    seen: dict[int, int] = {}
    nth = []
    starts = np.flatnonzero(np.diff(columns.batch, prepend=-1))
    for start in starts.tolist():
        node = id(columns.devices[start].node)
        nth.append(seen.get(node, 0))
        seen[node] = nth[-1] + 1
    if len(seen) == len(nth):
        return rounds(columns.rows)
    order = np.repeat(np.array(nth), np.diff(starts, append=len(columns.batch)))
    found = []
    for n in range(max(nth) + 1):
        where = np.flatnonzero(order == n)
        found += [where[part] for part in rounds(columns.rows[where])]
    return found


def ended(
    devices: Sequence[Device], at_ns: NDArray[np.int64], point_ns: int, owner: Callable[[Device], v1.Workload | None]
) -> Ended | None:
    """Of the devices of one round: those whose node's last point is `point_ns` ago. Takes note of it at the node."""
    i: list[int] = []
    places: list[Place] = []
    numbers: dict[Hashable, int] = {}

    def number(*key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers) + 1)

    for node, first, last in _runs(devices):
        now = int(at_ns[first])
        if 0 <= now - node.point_ns < point_ns:
            continue
        node.point_ns = now
        for k in range(first, last):
            device = devices[k]
            if not device.model or not device.whole:
                continue
            work = owner(device)
            workload = instance = 0
            if work is not None:
                workload = number("work", work.namespace, work.service or work.workload) if work.service or work.workload else 0
                instance = number("pod", work.namespace, work.pod, id(node)) if work.pod else 0
            i.append(k)
            places.append(Place(number("group", id(node), device.model), workload, instance))
    return Ended(np.array(i, np.intp), places) if i else None


def _runs(devices: Sequence[Device]) -> Iterator[tuple[Node, int, int]]:
    first = 0
    for k in range(1, len(devices) + 1):
        if k == len(devices) or devices[k].node is not devices[first].node:
            yield devices[first].node, first, k
            first = k
