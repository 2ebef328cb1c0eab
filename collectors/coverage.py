"""Which plugin speaks for a device that several see: the one of highest priority that still does; what the others say of it is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from collectors.contract import NodeReading, Reading
from schemas.flow import ReadingEvent
from schemas.identity import NodeRef
from schemas.telemetry import v1

DEFAULT: Final = 100
PRIORITIES: Final[Mapping[str, int]] = {"dcgm": 50}
"""Priorities of our plugins that have not DEFAULT: DCGM tells of the same GPUs as NVML, later, coarser and less."""

KEEP_NS: Final = 15 * 10**9
"""A device is covered for so long after it was last told of: the catalogue's max_age of a fast field, where ticks are not longer."""

_TICKS: Final = 2.5
_MOST: Final = 65_536

WAIT_NS: Final = 10 * 10**9
"""How long a plugin that starts first waits for the first word of a better one."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """What may go on. `dropped` counts samples and events of covered devices; `resumed`: devices that were dropped are told again."""

    reading: Reading
    dropped: int = 0
    resumed: bool = False


class Coverage:
    """State of one agent that reads each `interval_ns`. `priorities` has every plugin that runs; where all are equal nothing is kept
    and nothing dropped."""

    def __init__(self, priorities: Mapping[str, int] | None = None, *, interval_ns: int = 0) -> None:
        self._keep_ns = max(KEEP_NS, round(_TICKS * interval_ns))
        self._priorities = dict(priorities or {})
        self._lowest = min(self._priorities.values(), default=DEFAULT)
        self._highest = max(self._priorities.values(), default=DEFAULT)
        self._told: dict[tuple[NodeRef, str], tuple[int, int]] = {}
        self._spoke: set[str] = set()
        self._first_ns: dict[str, int] = {}
        self._silenced: set[str] = set()

    def sift(self, source: str, reading: Reading, own: NodeRef, now_ns: int) -> Sifted:
        """Take in one reading of a plugin; `own` is the agent's node, `now_ns` UTC."""
        self._spoke.add(source)
        mine = self._priorities.get(source, DEFAULT)
        if mine > self._lowest:
            if len(self._told) > _MOST:
                self._told = {place: told for place, told in self._told.items() if now_ns - told[1] <= self._keep_ns}
            for part in reading.samples:
                for sample in part.samples:
                    self._told[part.node or own, sample.uid] = (mine, now_ns)
        if mine >= self._highest:
            return Sifted(reading)
        waits = self._waits(source, mine, now_ns)
        kept: list[NodeReading] = []
        dropped = 0
        for part in reading.samples:
            ref = part.node or own
            good = tuple(
                s for s in part.samples if not (waits and ref == own) and not self._covered(ref, s.uid, s.info.parent_uid, mine, now_ns)
            )
            dropped += len(part.samples) - len(good)
            if good or not part.samples:
                kept.append(replace(part, samples=good))
        events = tuple(event for event in reading.events if not (isinstance(event, v1.DeviceEvent) and self.covers(source, event, now_ns)))
        dropped += len(reading.events) - len(events)
        resumed = not dropped and source in self._silenced
        (self._silenced.add if dropped else self._silenced.discard)(source)
        return Sifted(replace(reading, samples=tuple(kept), events=events), dropped, resumed)

    def covers(self, source: str, event: ReadingEvent, now_ns: int) -> bool:
        """Whether an event of this source is about a device that a better one speaks for."""
        mine = self._priorities.get(source, DEFAULT)
        if mine >= self._highest or not isinstance(event, v1.DeviceEvent) or not event.uid:
            return False
        return self._covered(NodeRef(event.cluster, event.node), event.uid, event.uid.rpartition("/")[0], mine, now_ns)

    def _covered(self, node: NodeRef, uid: str, parent: str, mine: int, now_ns: int) -> bool:
        for one in (uid, parent):
            told = self._told.get((node, one)) if one else None
            if told is None:
                continue
            if now_ns - told[1] > self._keep_ns:
                del self._told[node, one]
            elif told[0] > mine:
                return True
        return False

    def _waits(self, source: str, mine: int, now_ns: int) -> bool:
        better = {name for name, priority in self._priorities.items() if priority > mine}
        return not better <= self._spoke and now_ns - self._first_ns.setdefault(source, now_ns) < WAIT_NS


def priority(name: str, chosen: int | None) -> int:
    """A plugin's priority: what the settings say, else ours."""
    return chosen if chosen is not None else PRIORITIES.get(name, DEFAULT)
