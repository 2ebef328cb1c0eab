"""Tells what the devices of a node did in the last point, for comparing them with those of their model on other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from schemas.telemetry import v1
from streams.operators.detect import peers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streams.operators.detect.fleet import Device
    from streams.operators.detect.peers import Peers, Place
    from streams.operators.detect.table import Table

TOLD: Final = (*peers.NAMES, peers.LOAD, peers.LIMIT)
"""Metrics of a PeerStats, in its order. The clock of a device that is throttled is left out: it is explained."""

_CLOCK: Final = TOLD.index("sm_clock_hertz")


class Ended(NamedTuple):
    """Devices whose point ended, and what each is."""

    devices: Sequence[Device]
    places: Sequence[Place]
    at_ns: NDArray[np.int64]


def tell(table: Table, ended: Ended, options: Peers) -> list[v1.PeerStats]:
    """One message per node and model, of means that are in the table already."""
    found: dict[int, v1.PeerStats] = {}
    rows = [device.row for device in ended.devices]
    means = table["peer_mean"][rows]
    throttled = ~(means[:, peers.METRICS.index(peers.REASONS)] == 0)
    means = means[:, : len(TOLD)]
    means[throttled, _CLOCK] = np.nan
    samples = table["peer_samples"][rows].tolist()
    for k, (device, place, mean) in enumerate(zip(ended.devices, ended.places, means.tolist(), strict=True)):
        if place.group < 0:
            continue
        stats = found.get(place.group)
        if stats is None:
            stats = found[place.group] = v1.PeerStats(
                cluster=device.node.cluster,
                node=device.node.name,
                model=device.model,
                taken_at_ns=int(ended.at_ns[k]),
                interval_ns=round(options.point_seconds * 1e9),
                simulated=device.node.simulated,
                metric=TOLD,
            )
        stats.devices.add(uid=device.uid, index=device.index, mean=mean, samples=samples[k])
    return list(found.values())
