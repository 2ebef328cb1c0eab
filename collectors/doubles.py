"""One Xid, one event: the driver tells it both to NVML's listeners and to the kernel log, whose line says more; the poorer one is dropped.

An Xid that only NVML told (lines lost) is let through after a short wait, and at once where nobody reads the kernel log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from schemas.recent import Recent
from schemas.telemetry import v1

_XID: Final = v1.DeviceEventKind.DEVICE_EVENT_KIND_XID
_SECOND_NS: Final = 1_000_000_000

WAIT_NS: Final = 15 * _SECOND_NS
"""How long an Xid without its line waits: the kernel plugin holds symptoms 2 s for their cause and repeats a storm each 10 s."""

NEAR_NS: Final = 5 * _SECOND_NS
"""Two reports of one Xid are so near: NVML's time is of its delivery, the line's of its writing."""

_LINES: Final = 4096
_HELD: Final = 1024


_TICKS: Final = 2.5


class _Span(NamedTuple):
    """When the lines were written, by the kernel's clock, and when they were heard of; `heard_ns` 0: they were old by then."""

    first_ns: int
    last_ns: int
    heard_ns: int


class Doubles:
    """State of one node that is read each `interval_ns`. `kernel` is the source whose events win; every other source's Xids wait for
    them.

    Two reports belong together where their times are near, or where they were heard at about the same time: the kernel stamps its lines
    with a clock that nobody disciplines, and after months without a reboot it is minutes off.
    """

    def __init__(self, kernel: str = "kernel", *, interval_ns: int = 0) -> None:
        self._kernel = kernel
        self._wait_ns = max(WAIT_NS, round(_TICKS * interval_ns))
        self._lines: Recent[tuple[str, int], _Span] = Recent(_LINES)
        self._held: list[tuple[int, v1.DeviceEvent]] = []
        self.expected = True
        """Whether anybody reads the kernel log; else nothing is waited for."""
        self.dropped = 0

    def sift(self, source: str, events: Sequence[v1.DeviceEvent], now_ns: int) -> list[v1.DeviceEvent]:
        """What of these may go on now; the rest is held or was a double."""
        passed = []
        for event in events:
            if event.kind != _XID or not event.uid:
                passed.append(event)
            elif source == self._kernel:
                self._remember(event, now_ns)
                passed.append(event)
            elif not self._known(event, now_ns):
                self._held.append((now_ns, event))
            else:
                self.dropped += 1
        return passed

    def due(self, now_ns: int) -> list[v1.DeviceEvent]:
        """Held events whose line did not come; doubles among the held are dropped."""
        if not self._held:
            return []
        wait_ns = self._wait_ns if self.expected else 0
        kept: list[tuple[int, v1.DeviceEvent]] = []
        passed: list[v1.DeviceEvent] = []
        for since_ns, event in self._held:
            if self._known(event, since_ns):
                self.dropped += 1
            elif now_ns - since_ns >= wait_ns or len(self._held) - len(passed) > _HELD:
                passed.append(event)
            else:
                kept.append((since_ns, event))
        self._held = kept
        return passed

    def flush(self) -> list[v1.DeviceEvent]:
        """Everything held that is no double, without a wait: the agent ends."""
        held, self._held = self._held, []
        return [event for since_ns, event in held if not self._known(event, since_ns)]

    def _remember(self, event: v1.DeviceEvent, now_ns: int) -> None:
        place = (event.uid, event.code)
        first, last = event.first_at_ns or event.at_ns, event.last_at_ns or event.at_ns
        heard = 0 if "backlog" in event.details else now_ns
        known = self._lines.get(place)
        if known is not None and first - known.last_ns <= NEAR_NS:
            first, last, heard = min(first, known.first_ns), max(last, known.last_ns), max(heard, known.heard_ns)
        self._lines[place] = _Span(first, last, heard)

    def _known(self, event: v1.DeviceEvent, since_ns: int) -> bool:
        """Whether a line tells of this event, which was heard at `since_ns`."""
        span = self._lines.get((event.uid, event.code))
        if span is None:
            return False
        if span.first_ns - NEAR_NS <= event.at_ns <= span.last_ns + NEAR_NS:
            return True
        return span.heard_ns > 0 and abs(span.heard_ns - since_ns) <= self._wait_ns
