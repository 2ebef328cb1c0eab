"""One plugin as the agent sees it: its process, its policy, its numbering, and what follows from each word it says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collectors import frames
from collectors.child import Child
from collectors.contract import OnUnavailable, Reading
from collectors.events import Kind, Severity, device_event
from collectors.observer import Nobody, Observer
from collectors.presence import Presence
from collectors.publisher import Publisher, event_out
from collectors.stats import Tally
from schemas import topics
from schemas.flow import Busy, Out, Rejected
from schemas.identity import NodeRef
from schemas.telemetry import v1

log = logging.getLogger("xpulse.agent")

BACKLOG = 1000
"""Events and inventory that wait for room on the bus; the oldest goes first when there is none."""


START_SECONDS = 60.0
"""How long a process may take to its first word: interpreter and imports on a loaded host are no driver that hangs."""


class Stop(Exception):
    """The agent has to end: `code` 1 where a required source is unavailable, 2 where the configuration is wrong."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of the monotonic clock."""

    hang_seconds: float
    restart_min_seconds: float
    restart_max_seconds: float


class Supervised:
    """Holds at most one process. Every method takes `at`, the monotonic clock in seconds; `clock` is the wall clock in ns UTC."""

    def __init__(
        self,
        name: str,
        order: Mapping[str, Any],
        policy: OnUnavailable,
        limits: Limits,
        *,
        node: NodeRef,
        publisher: Publisher,
        publish: Callable[[Sequence[Out]], None],
        clock: Callable[[], int],
        observer: Observer | None = None,
    ) -> None:
        self.tally = Tally(name)
        self._observer: Observer = observer or Nobody()
        self.child: Child | None = None
        self._order, self._policy, self._limits = order, policy, limits
        self._node, self._publisher, self._publish, self._clock = node, publisher, publish, clock
        self._presence = Presence(name)
        self._backlog: list[Out] = []
        self._heard_at = 0.0
        self._start_at = 0.0
        self._started_at = 0.0
        self._heard = False
        self._wait_seconds = limits.restart_min_seconds
        self._dying: Child | None = None
        self._failed = ""
        self._troubled = False

    def start_if_due(self, at: float) -> bool:
        """Start the process where one is due; True where a new one runs. Never beside one that will not die: both would hang."""
        if self._dying is not None and self._dying.gone():
            self._dying = None
        if self.child is not None or self._dying is not None or self.tally.state == "skipped" or at < self._start_at:
            return False
        self.child = Child(self._order)
        self._heard_at = self._started_at = at
        self._heard = False
        self._failed = ""
        return True

    def hear(self, at: float) -> bool:
        """Take in what the process said; False once it is gone. Raises Stop."""
        assert self.child is not None
        try:
            for word in self.child.hear():
                self._heard_at, self._heard = at, True
                self._take(word)
                if self.tally.state == "skipped":
                    self._drop_child()
                    return False
        except frames.Broken as error:
            self._lose(at, "source_unavailable", f"its process spoke nonsense: {error}")
            return False
        if self.child.ended:
            self.child.gone(0.5)
            self._lose(at, "source_unavailable", self._failed or f"its process {self.child.how_it_ended()}")
            return False
        return True

    def hangs(self, at: float) -> bool:
        """True where the process was silent for too long and has been killed."""
        limit = self._limits.hang_seconds if self._heard else max(START_SECONDS, self._limits.hang_seconds)
        if self.child is None or at - self._heard_at < limit:
            return False
        self._lose(at, "hang", f"the driver did not answer for {limit:g} s; its process was killed", "critical")
        return True

    def _take(self, word: frames.Word) -> None:
        match word:
            case frames.Alive():
                pass
            case frames.Up(devices):
                self.tally.devices = devices
            case frames.Down(reason, _):
                self._unavailable(reason)
            case frames.Failed(reason, misconfigured):
                if misconfigured:
                    raise Stop(2, reason)
                self._failed = reason
            case frames.Read(reading, duration_ns, skipped):
                self._read(reading, duration_ns, skipped)

    def _unavailable(self, reason: str) -> None:
        if self._policy == "fail":
            self._event("source_unavailable", reason)
            raise Stop(1, f"collectors.plugins.{self.tally.name}: {reason} (on_unavailable is fail)")
        if self.tally.reason != reason:
            log.warning("plugin %s is unavailable (%s): %s", self.tally.name, self._policy, reason)
            self._event("source_unavailable", reason)
        self.tally.state = "skipped" if self._policy == "skip" else "unavailable"
        self.tally.reason, self.tally.devices = reason, 0
        self._troubled = True

    def _read(self, reading: Reading, duration_ns: int, skipped: int) -> None:
        tally = self.tally
        if self._troubled:
            self._troubled = False
            self._event("recovered", "the source answers again", "info")
        if self._heard_at - self._started_at > self._limits.restart_max_seconds:
            self._wait_seconds = self._limits.restart_min_seconds  # not after one read: one that dies at each tenth would restart at once
        tally.state, tally.reason = "reading", ""
        tally.reads += 1
        tally.last_read_seconds = duration_ns / 1e9
        tally.read_seconds += tally.last_read_seconds
        tally.last_success_ns = self._clock()
        tally.ticks_skipped += skipped
        tally.rejects.update(reading.rejects)
        tally.devices = sum(len(part.samples) for part in reading.samples)
        self._observer.observe(tally.name, reading)
        for event in reading.events:
            if isinstance(event, v1.DeviceEvent):
                self._presence.note(event)
                self._observer.happened(event)
        noticed = []
        for part in reading.samples:
            uids = (sample.uid for sample in part.samples)
            noticed += self._presence.update(part.node or self._node, uids, part.taken_at_ns, simulated=part.simulated)
        for one in noticed:
            self._observer.happened(one)
        try:
            outs = self._publisher.outs(reading, self._clock())
        except Rejected as error:
            log.error("plugin %s: a message was not sent: %s", tally.name, error.reason)
            tally.dropped["too_large"] += 1
            return
        self._send([*outs, *map(event_out, noticed)])

    def _event(self, kind: Kind, text: str, severity: Severity = "warning") -> None:
        event = device_event(self._node, self.tally.name, kind, self._clock(), text, severity=severity)
        self._observer.happened(event)
        self._send([event_out(event)])

    def _send(self, outs: list[Out]) -> None:
        """Publish; what the bus has no room for is kept where it happens once (events, inventory) and counted where it does not."""
        try:
            self._publish([*self._backlog, *outs])
            self._backlog = []
        except Busy:
            kept = [out for out in outs if out.topic != topics.SAMPLES]
            self.tally.dropped["bus_full"] += len(outs) - len(kept)
            self._backlog += kept
            over = len(self._backlog) - BACKLOG
            if over > 0:
                self.tally.dropped["bus_full"] += over
                del self._backlog[:over]
            self._publisher.resend()

    def _lose(self, at: float, kind: Kind, reason: str, severity: Severity = "warning") -> None:
        log.warning("plugin %s: %s; it starts again in %.1f s", self.tally.name, reason, self._wait_seconds)
        self._event(kind, reason, severity)
        self._drop_child()
        self.tally.state, self.tally.reason = "restarting", reason
        self.tally.restarts += 1
        self._troubled = True
        self._start_at = at + self._wait_seconds
        self._wait_seconds = min(2 * self._wait_seconds, self._limits.restart_max_seconds)

    def _drop_child(self) -> None:
        assert self.child is not None
        child, self.child = self.child, None
        child.kill()
        child.close()
        if not child.gone(0.1):
            self._dying = child
