"""Decides what is sent from the spool next: oldest first over all topics, no faster than it may, and little while the bus is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xpulse.bus.line import Flight, size_bytes
from xpulse.northbound.spool.stamp import sent_again

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xpulse.bus.line import Line
    from xpulse.northbound.spool.lane import Lane

PROBE_RECORDS: Final = 8
"""What asks a silent bus whether it is back. They wait for the answer with an old time of sending, so they are few: of 30 batches the
quickest tells a node's clock (streams.operators.detect.clocks)."""

_PORTION_BYTES: Final = 256 * 1024
_PORTION_RECORDS: Final = 1000
_ABREAST_NS: Final = 30 * 1_000_000_000
"""By how much one topic may be sent ahead of another: samples are to meet the allocations of their time."""


class Replay:
    """`lanes` are the spool's, by topic. A backlog shrinks by `bytes_per_second` whatever comes in meanwhile. `at`: monotonic seconds."""

    def __init__(self, lanes: Mapping[str, Lane], bytes_per_second: int, at: float) -> None:
        self._lanes, self._bytes_per_second = lanes, bytes_per_second
        self._at = at
        self._budget_bytes = 0.0

    def wrote(self, taken_bytes: int) -> None:
        """So much was added to the backlog."""
        self._budget_bytes += taken_bytes

    def refill(self, spooling: Sequence[Line], at: float, now_ns: int) -> list[Line]:
        """Put the next messages on each line that has none on its way; those lines. A line whose spool is empty goes without it again."""
        passed, self._at = at - self._at, at
        if not spooling:
            self._budget_bytes = 0.0
            return []
        most = max(self._budget_bytes, float(self._bytes_per_second))
        self._budget_bytes = min(self._budget_bytes + passed * self._bytes_per_second, most)
        oldest = {line.topic: self._lanes[line.topic].oldest_ns for line in spooling}
        abreast_ns = min((oldest[line.topic] for line in spooling if line.flowing), default=0) + _ABREAST_NS
        filled = []
        for line in sorted(spooling, key=lambda line: oldest[line.topic]):
            if line.flights or (line.flowing and (self._budget_bytes <= 0 or oldest[line.topic] > abreast_ns)):
                continue
            flight = self._next(line, abreast_ns, now_ns)
            if flight is None:
                line.spooling, line.flowing, line.since = False, True, at
                continue
            self._budget_bytes -= flight.bytes
            line.add(flight, at)
            filled.append(line)
        return filled

    def _next(self, line: Line, until_ns: int, now_ns: int) -> Flight | None:
        lane = self._lanes[line.topic]
        if line.flowing:
            most_bytes = min(_PORTION_BYTES, max(1, int(self._budget_bytes)))
            entries = lane.read(most_bytes=most_bytes, most_records=_PORTION_RECORDS, until_ns=until_ns)
        else:
            entries = lane.read(most_bytes=_PORTION_BYTES, most_records=PROBE_RECORDS)
        if not entries:
            return None
        outs = [sent_again(entry.out, now_ns) for entry in entries]
        return Flight(outs, sum(map(size_bytes, outs)), frames=len(entries), late=True)
