"""Writes points to InfluxDB so that each is stored, refused with the server's reason, or sent again: none is ever dropped on the way.

A bad line makes the server refuse the lines around it: the batch is halved until the bad ones stand alone. Everything else is
Busy, and the same points come again; writing a point twice changes nothing, as series and time are the message's.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Final

from schemas.flow import Busy
from sinks.influxdb.answer import LEAST_WAIT_SECONDS, MOST_WAIT_SECONDS, Answer
from sinks.influxdb.http import Unreachable
from sinks.influxdb.line import Encoder
from sinks.points import RejectedPoint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sinks.influxdb.http import Door
    from sinks.points import Point

MOST_BODY_BYTES: Final = 8 * 1024 * 1024
NOT_ALLOWED_WAIT_SECONDS: Final = 15.0
FAILURES_BEFORE_SEARCH: Final = 3
"""A 500 comes again at once or never; after so many, older 2.x servers mean a line of the batch by it, and it is searched for."""

MOST_FAILURES_UNPROVEN: Final = 32
"""Requests of one search that may fail before one succeeds: halving 5,000 lines down to one bad line takes 13."""

_Line = tuple[int, bytes]


class InfluxWriter:
    """A PointWriter. `where` names the target in messages; `jitter` gives a number in [0, 1)."""

    def __init__(self, door: Door, *, where: str, batch_lines: int, jitter: Callable[[], float] = random.random) -> None:
        self._door = door
        self._where = where
        self._batch_lines = batch_lines
        self._jitter = jitter
        self._encoder = Encoder()
        self._dropped: Counter[str] = Counter()
        self.written_total = 0
        self._troubles = 0
        self._failed_writes = 0
        self._proven = False
        self._unproven = 0
        self._suspects: list[RejectedPoint] = []

    def write(self, points: Sequence[Point]) -> list[RejectedPoint]:
        """Returns once every point is stored or refused; what is outside the bucket's retention is counted and not refused.

        Raises Busy: the same points again later.
        """
        lines = [(i, line) for i, line in enumerate(self._encoder.lines(points)) if line]
        empty = len(points) - len(lines)
        outside = 0
        self._proven, self._unproven, self._suspects = False, 0, []
        rejected: list[RejectedPoint] = []
        for chunk in self._chunks(lines):
            refused, dropped = self._write(chunk)
            rejected += refused
            outside += dropped
        if self._suspects and not self._proven:
            raise self._busy(self._suspects[0].reason, None)
        rejected += self._suspects
        # counted only now: a Busy above brings all of them again
        self._troubles = self._failed_writes = 0
        self.written_total += len(lines) - len(rejected) - outside
        self._dropped["outside_retention"] += outside
        self._dropped["no_field_left"] += empty
        return sorted(rejected, key=lambda r: r.position)

    @property
    def dropped(self) -> Counter[str]:
        fields = {f"field_{reason}": n for reason, n in self._encoder.dropped.items()}
        return self._dropped + Counter(fields)

    def close(self) -> None:
        self._door.close()

    def _chunks(self, lines: list[_Line]) -> list[list[_Line]]:
        chunks: list[list[_Line]] = [[]]
        size = 0
        for line in lines:
            size += len(line[1]) + 1
            if chunks[-1] and (len(chunks[-1]) >= self._batch_lines or size > MOST_BODY_BYTES):
                chunks.append([])
                size = len(line[1]) + 1
            chunks[-1].append(line)
        return [chunk for chunk in chunks if chunk]

    def _write(self, lines: list[_Line]) -> tuple[list[RejectedPoint], int]:
        """Refused points, and how many lie outside the retention."""
        answer = self._post(lines)
        match answer.meaning:
            case "written":
                self._proven = True
                return [], 0
            case "outside_retention":
                return [], min(answer.dropped, len(lines))
            case "bad_lines":
                if len(lines) == 1:
                    return [RejectedPoint(lines[0][0], f"InfluxDB {answer.reason}")], 0
                return self._halves(lines)
            case "too_large":
                if len(lines) == 1:
                    return [RejectedPoint(lines[0][0], f"InfluxDB {answer.reason} ({len(lines[0][1])} bytes)")], 0
                return self._halves(lines)
            case "failed":
                return self._search(lines, answer)
            case "not_allowed":
                raise Busy(
                    NOT_ALLOWED_WAIT_SECONDS,
                    f"InfluxDB at {self._where} refuses us: {answer.reason}. Nothing is lost, nothing is written: check url, org, bucket "
                    "and token (`xpulse sink influxdb --setup` makes them)",
                )
            case "overloaded":
                raise self._busy(answer.reason, answer.retry_after_seconds)

    def _halves(self, lines: list[_Line]) -> tuple[list[RejectedPoint], int]:
        middle = len(lines) // 2
        first, dropped_first = self._write(lines[:middle])
        second, dropped_second = self._write(lines[middle:])
        return first + second, dropped_first + dropped_second

    def _search(self, lines: list[_Line], answer: Answer) -> tuple[list[RejectedPoint], int]:
        """Halve down to single suspects; `write` refuses them only if other lines of the call were written (a full disk fails all)."""
        if self._failed_writes < FAILURES_BEFORE_SEARCH:
            self._failed_writes += 1
            raise self._busy(answer.reason, None)
        self._unproven += 1
        if not self._proven and self._unproven > MOST_FAILURES_UNPROVEN:
            raise self._busy(answer.reason, None)
        if len(lines) > 1:
            return self._halves(lines)
        self._suspects.append(RejectedPoint(lines[0][0], f"InfluxDB {answer.reason}, while it takes the lines around it"))
        return [], 0

    def _post(self, lines: list[_Line]) -> Answer:
        try:
            return self._door.post([line for _, line in lines])
        except Unreachable as unreachable:
            raise self._busy(str(unreachable), None) from None

    def _busy(self, reason: str, asked_seconds: float | None) -> Busy:
        """Wait as asked, else 1, 2, 4 … s; plus up to half of it, so that the writers of a fleet do not come back together."""
        self._troubles += 1
        wait = asked_seconds or min(LEAST_WAIT_SECONDS * 2 ** min(self._troubles - 1, 6), MOST_WAIT_SECONDS)
        return Busy(wait * (1 + self._jitter() / 2), f"InfluxDB at {self._where}: {reason}; the same points are sent again")
