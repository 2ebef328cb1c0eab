"""Tells what the devices of a node did in the last point, for comparing them with those of their model on other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from schemas.telemetry import v1
from streams.operators.detect import peers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.columns import Columns
    from streams.operators.detect.held import Ended
    from streams.operators.detect.peers import Peers
    from streams.operators.detect.table import Table

TOLD: Final = (*peers.NAMES, peers.LOAD, peers.LIMIT)
"""Metrics of a PeerStats, in its order. The clock of a device that is throttled is left out: it is explained."""

_CLOCK: Final = TOLD.index("sm_clock_hertz")


def tell(table: Table, columns: Columns, where: NDArray[np.intp], ended: Ended, options: Peers) -> list[v1.PeerStats]:
    """One message per node and model of the devices that end a point; their means are in the table already."""
    found: dict[int, v1.PeerStats] = {}
    means = table["peer_mean"][columns.rows[where[ended.i]]]
    throttled = ~(means[:, peers.METRICS.index(peers.REASONS)] == 0)
    means = means[:, : len(TOLD)].copy()
    means[throttled, _CLOCK] = np.nan
    for k, (position, place) in enumerate(zip(where[ended.i].tolist(), ended.places, strict=True)):
        device = columns.devices[position]
        stats = found.get(place.group)
        if stats is None:
            stats = found[place.group] = v1.PeerStats(
                cluster=device.node.cluster,
                node=device.node.name,
                model=device.model,
                taken_at_ns=int(columns.at_ns[position]),
                interval_ns=round(options.point_seconds * 1e9),
                simulated=device.node.simulated,
                metric=TOLD,
            )
        stats.devices.add(uid=device.uid, index=device.index, mean=means[k].tolist(), samples=int(table["peer_samples"][device.row]))
    return list(found.values())
