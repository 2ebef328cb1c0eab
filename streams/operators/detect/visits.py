"""Splits what was read into rounds in which no node comes twice, and says which devices can be compared with which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streams.operators.detect.columns import rounds
from streams.operators.detect.peers import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from schemas.telemetry import v1
    from streams.operators.detect.columns import Columns
    from streams.operators.detect.fleet import Device

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


def places(devices: Sequence[Device], owner: Callable[[Device], v1.Workload | None]) -> list[Place]:
    """What devices are, for comparing: the whole ones of a node and model are one group."""
    found = []
    numbers: dict[Hashable, int] = {}

    def number(*key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers) + 1)

    for device in devices:
        if not device.model or not device.whole:
            found.append(_NOWHERE)
            continue
        node = id(device.node)
        work = owner(device)
        workload = instance = 0
        if work is not None:
            workload = number("work", work.namespace, work.service or work.workload) if work.service or work.workload else 0
            instance = number("pod", work.namespace, work.pod, node) if work.pod else 0
        found.append(Place(number("group", node, device.model), workload, instance))
    return found


_NOWHERE: Final = Place(-1, 0, 0)
