"""How far each partition goes, by librdkafka's statistics: known without asking, and not believed where the broker fell silent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from xpulse.bus.places import Place

INTERVAL_MS: Final = 1000
"""`statistics.interval.ms` of our consumers."""

_SILENT_NS: Final = 3_000_000_000
"""A fetch answers within `fetch.wait.max.ms` also where there is nothing; a broker silent for longer tells nothing of its end offsets."""


def note_heads(statistics: str, places: Iterable[Place], now_ns: int, *, monotonic_ns: int | None = None) -> None:
    """Write the end offset of each place, and when it was true (wall clock, ns); None where that is not known.

    `ts` of the statistics is CLOCK_MONOTONIC in µs, `rxidle` the µs since the broker last said anything.
    """
    document = json.loads(statistics)
    age_ns = (time.monotonic_ns() if monotonic_ns is None else monotonic_ns) - document["ts"] * 1000
    silent_ns = {broker["nodeid"]: broker["rxidle"] * 1000 for broker in document["brokers"].values() if broker["state"] == "UP"}
    topics = document["topics"]
    for place in places:
        told = topics.get(place.wire, {}).get("partitions", {}).get(str(place.at.partition))
        place.high = None
        if told is None or told["hi_offset"] < 0:
            continue
        idle_ns = silent_ns.get(told["broker"], -1)
        if idle_ns >= 0 and idle_ns + age_ns <= _SILENT_NS:
            place.high = told["hi_offset"]
            place.high_at_ns = now_ns - max(0, age_ns) - idle_ns
