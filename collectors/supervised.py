"""One plugin as the agent sees it: its process, its policy, and its rests while somebody else wants the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from collectors import frames
from collectors.avoided import Avoided
from collectors.child import Child
from collectors.contract import OnUnavailable, Reading
from collectors.events import Kind, Severity
from collectors.outlet import Outlet
from collectors.patience import Patience
from collectors.stats import Tally
from collectors.trial import Trial

log = logging.getLogger("xpulse.agent")

MOST_STUCK: Final = 3
"""Processes that do not die beside which another is started, where each is known to be stuck at a device that the other leaves out."""

LEAVE_SECONDS: Final = 2.0
"""How long a process may take to close its driver when it is asked to go; then it is killed."""

REMIND_SECONDS: Final = 60.0
"""A maintenance that lasts is said again so often: consumers rebuild their state from the last 120 s (ARCHITECTURE §6.5)."""


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
    """Holds at most one process that reads, and now and then one that tries what is left out.

    Every method takes `at`, the monotonic clock in seconds.
    """

    def __init__(
        self, order: Mapping[str, Any], policy: OnUnavailable, limits: Limits, outlet: Outlet, tally: Tally, *, releases: bool
    ) -> None:
        self.tally = tally
        self.outlet = outlet
        self.child: Child | None = None
        self._order, self._policy, self._limits, self._releases = order, policy, limits, releases
        self._start_at = 0.0
        self._started_at = 0.0
        self._patience = Patience(limits.hang_seconds, 0.0)
        self._wait_seconds = limits.restart_min_seconds
        self._dying: list[tuple[Child, bool]] = []
        """Killed and not dead yet; whether it is known what each is stuck at."""
        self._failed = ""
        self._troubled = False
        self._rest: _Rest | None = None
        self._avoided = Avoided()
        self._trial: tuple[Trial, frozenset[str]] | None = None
        self._answers_again = False
        """Something that the running process leaves out: it is to start anew, when the others have been tried too."""

    def children(self) -> list[Child]:
        """Every process that may still run."""
        own = [self.child] if self.child is not None else []
        return own + ([self._trial[0].child] if self._trial is not None else [])

    def rest(self, reason: str, at: float, now_ns: int) -> None:
        """Let the driver go while `reason` (not empty) stands, and come back when it does not. Call it as often as you like."""
        if not self._releases:
            return
        if reason and self._rest is None:
            log.warning("plugin %s lets the driver go: %s", self.tally.name, reason)
            self._rest = _Rest(reason, now_ns, at, at)
            self._say_rest()
            if self.child is not None:
                self.child.end()
            self._end_trial()
        elif reason and self._rest is not None and at - self._rest.said_at >= REMIND_SECONDS:
            self._rest.said_at = at
            self._say_rest()
        elif not reason and self._rest is not None:
            log.warning("plugin %s comes back: %s is over", self.tally.name, self._rest.reason)
            self.outlet.say("maintenance_ended", f"{self._rest.reason} is over; the driver is read again", "info")
            self.outlet.look_again()
            self._rest = None
            self._avoided.all_well(at)
            self._start_at = at
            self._troubled = False
            if self.tally.state == "maintenance":
                self.tally.state, self.tally.reason = "starting", ""

    def _say_rest(self) -> None:
        assert self._rest is not None
        text = f"the driver was let go on request ({self._rest.reason})"
        self.outlet.say("maintenance", text, "info", since_ns=self._rest.since_ns)
        self.tally.state, self.tally.reason, self.tally.devices = "maintenance", self._rest.reason, 0

    def start_if_due(self, at: float) -> bool:
        """Start the process where one is due; True where a new one runs. Never beside one that will not die at who knows what: both
        would hang."""
        if self.child is not None or self._rest is not None or self.tally.state == "skipped" or at < self._start_at:
            return False
        if not self._may_start():
            return False
        try:
            self.child = Child({**self._order, "avoid": self._avoided.now()})
            self._answers_again = False
        except OSError as error:
            self._lose(at, "source_unavailable", f"its process cannot be started: {error.strerror or error}")
            return False
        self._started_at = at
        self._patience = Patience(self._limits.hang_seconds, at)
        self._failed = ""
        return True

    def stood_still(self, seconds: float, at: float) -> None:
        """The agent did not run for so long: no silence of the plugin's."""
        self._patience.stood_still(seconds, at)
        if self._trial is not None:
            self._trial[0].stood_still(seconds, at)

    def hear(self, at: float) -> bool:
        """Take in what the process said; False once it is gone. Raises Stop."""
        assert self.child is not None
        try:
            for word in self.child.hear():
                self._patience.word(at, answers=not isinstance(word, frames.Alive))
                if self._rest is not None:
                    self._take_last(word)
                    continue
                self._take(word, at)
                if self.tally.state == "skipped":
                    self._drop_child()
                    return False
        except frames.Broken as error:
            if self._rest is not None:
                self._drop_child()
            else:
                self._lose(at, "source_unavailable", f"its process spoke nonsense: {error}")
            return False
        if self.child.ended:
            self.child.gone(0.5)
            if self._rest is not None:
                self._drop_child()
            else:
                self._lose(at, "source_unavailable", self._failed or f"its process {self.child.how_it_ended()}")
            return False
        return True

    def hangs(self, at: float) -> bool:
        """True where the process was silent for too long, or did not go when it was asked to, and has been killed."""
        if self.child is None:
            return False
        if self._rest is not None:
            if at - self._rest.began_at < LEAVE_SECONDS:
                return False
            self._drop_child()
            return True
        place = self.child.place()
        limit = self._patience.over(place, at)
        if limit is None:
            return False
        text = f"the driver did not answer for {limit:g} s; its process was killed"
        if place is not None:
            again = self._avoided.add(place, at)
            text += f". It was asked for {place.uid or place.key}, which is left out and tried again in {again:g} s"
        self._lose(at, "hang", text, "critical", stuck_at_known=place is not None)
        return True

    def tries_again(self, at: float) -> bool:
        """Let a process of its own try what is left out; True where it answers again and the process was ended: the next reads it too."""
        if self.child is None or self._rest is not None:
            return False
        if self._trial is not None:
            trial, keys = self._trial
            outcome = trial.outcome(at)
            if outcome is None:
                return False
            self._end_trial()
            if outcome == "well":
                self._avoided.well(keys, at)
                self._answers_again = True
            else:
                again = self._avoided.again(keys, at)
                log.warning("plugin %s: what it hung at was tried and %s; again in %g s", self.tally.name, outcome, again)
        due = self._avoided.due(at)
        if due and self._may_start() and not self._dying:  # one that is stuck there has tried it already
            self._try(due, at)
        if self._trial is not None or not self._answers_again:
            return False
        log.warning("plugin %s: what it hung at answers again; it starts anew to read it", self.tally.name)
        self._drop_child()
        self._start_at = at
        return True

    def _try(self, keys: frozenset[str], at: float) -> None:
        avoid = {key: uid for key, uid in self._avoided.now().items() if key not in keys}
        try:
            self._trial = Trial({**self._order, "avoid": avoid}, self._limits.hang_seconds, at), keys
        except OSError as error:
            again = self._avoided.again(keys, at)
            log.warning("plugin %s: what it hung at cannot be tried (%s); again in %g s", self.tally.name, error.strerror or error, again)

    def _end_trial(self) -> None:
        if self._trial is not None:
            self._end(self._trial[0].child, stuck_at_known=True)
            self._trial = None

    def _may_start(self) -> bool:
        self._dying = [(child, known) for child, known in self._dying if not child.gone()]
        return len(self._dying) <= MOST_STUCK and all(known for _, known in self._dying)

    def _take(self, word: frames.Word, at: float) -> None:
        match word:
            case frames.Alive():
                pass
            case frames.Up(devices):
                self.tally.devices = devices
            case frames.Down(reason, _):
                self._unavailable(reason)
            case frames.Failed(reason, misconfigured):
                if misconfigured:
                    raise Stop(2, f"collectors.plugins.{self.tally.name}: {reason}")
                self._failed = reason
            case frames.Read(reading, duration_ns, skipped):
                self._read(reading, duration_ns, skipped, at)

    def _take_last(self, word: frames.Word) -> None:
        """What a process says that was asked to go: somebody may be at work on the cards already, and what it misses is not lost."""
        if isinstance(word, frames.Read):
            self.tally.dropped["maintenance"] += sum(len(part.samples) for part in word.reading.samples) + len(word.reading.events)

    def _unavailable(self, reason: str) -> None:
        if self._policy == "fail":
            self.outlet.say("source_unavailable", reason)
            raise Stop(1, f"collectors.plugins.{self.tally.name}: {reason} (on_unavailable is fail)")
        if self.tally.reason != reason:
            log.warning("plugin %s is unavailable (%s): %s", self.tally.name, self._policy, reason)
            self.outlet.say("source_unavailable", reason)
        self.tally.state = "skipped" if self._policy == "skip" else "unavailable"
        self.tally.reason, self.tally.devices = reason, 0
        self._troubled = True

    def _read(self, reading: Reading, duration_ns: int, skipped: int, at: float) -> None:
        tally = self.tally
        if self._troubled:
            self._troubled = False
            self.outlet.say("recovered", "the source answers again", "info")
        if at - self._started_at > self._limits.restart_max_seconds:
            self._wait_seconds = self._limits.restart_min_seconds  # not after one read: one that dies at each tenth would restart at once
        tally.state, tally.reason = "reading", ""
        tally.reads += 1
        tally.last_read_seconds = duration_ns / 1e9
        tally.read_seconds += tally.last_read_seconds
        tally.last_success_ns = self.outlet.now_ns()
        tally.ticks_skipped += skipped
        tally.rejects.update(reading.rejects)
        tally.devices = sum(len(part.samples) for part in reading.samples)
        self.outlet.read(reading)

    def _lose(self, at: float, kind: Kind, reason: str, severity: Severity = "warning", *, stuck_at_known: bool = False) -> None:
        log.warning("plugin %s: %s; it starts again in %.1f s", self.tally.name, reason, self._wait_seconds)
        self.outlet.say(kind, reason, severity)
        if self.child is not None:
            self._drop_child(stuck_at_known=stuck_at_known)
        self.tally.state, self.tally.reason = "restarting", reason
        self.tally.restarts += 1
        self._troubled = True
        self._start_at = at + self._wait_seconds
        self._wait_seconds = min(2 * self._wait_seconds, self._limits.restart_max_seconds)

    def _drop_child(self, *, stuck_at_known: bool = False) -> None:
        assert self.child is not None
        child, self.child = self.child, None
        self._end(child, stuck_at_known=stuck_at_known)

    def _end(self, child: Child, *, stuck_at_known: bool) -> None:
        child.kill()
        child.close()
        if not child.gone(0.1):
            self._dying.append((child, stuck_at_known))


@dataclass(slots=True)
class _Rest:
    """A maintenance: why, since when (ns UTC; monotonic seconds), and when it was said last."""

    reason: str
    since_ns: int
    began_at: float
    said_at: float
