"""The notifier's role: tells every channel when an incident begins, gets worse and ends, each channel in order and on its own.

After a crash a notification may come again, with the same Idempotency-Key; none is lost. A channel that fails holds the batch
(Busy), the others are not told twice; after `give_up_seconds` its notification goes to the dead letters and it is tried with the next.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from schemas import topics
from schemas.codec import decode
from schemas.flow import Busy, DeadLetter, Emitted, Rejected
from schemas.telemetry import v1
from sinks.alert_json import transition_id
from sinks.notify.channel import Later, Refused
from sinks.notify.incidents import Notice, Told, knows, take
from sinks.points import checked_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from schemas.flow import Partition, Reader, Record, Tick
    from sinks.notify.channel import Channel

Severity = Literal["info", "warning", "critical"]
_RANK: Final[dict[Severity, int]] = {
    "info": v1.Severity.SEVERITY_INFO,
    "warning": v1.Severity.SEVERITY_WARNING,
    "critical": v1.Severity.SEVERITY_CRITICAL,
}
_RESOLVED: Final = v1.AlertStatus.ALERT_STATUS_RESOLVED
_Place = tuple[int, int]

MOST_PAST: Final = 20_000
"""Transitions of the past that a start looks at, the newest; each takes some 2 KiB until the first record comes."""


class _Planned(NamedTuple):
    """What a record leads to; `silent` says why it is not told."""

    notices: tuple[Notice, ...] = ()
    silent: str = ""
    letter: DeadLetter | None = None


class NotifyProcessor:
    """A Processor. `clock_ns` is the wall clock: how old an alert is, and how long a channel has failed, is its business only."""

    role = "notify"
    inputs = (topics.ALERTS,)
    rewind_seconds = 0.0
    silent_rebuild = False

    def __init__(
        self,
        channels: Sequence[Channel],
        *,
        min_severity: Severity = "info",
        max_age_ns: int = 86_400 * 1_000_000_000,
        give_up_ns: int = 900 * 1_000_000_000,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._channels = tuple(channels)
        self._min_rank = _RANK[min_severity]
        self._max_age_ns = max_age_ns
        self._give_up_ns = give_up_ns
        self._clock_ns = clock_ns
        self.dropped: Counter[str] = Counter()
        self.delivered_total = 0
        self._told = Told()
        self._past: list[tuple[_Place, v1.Alert]] = []
        # of the batch at hand only: what it leads to, what was settled before a Busy, and since when something fails
        self._planned: dict[_Place, _Planned] = {}
        self._settled: dict[tuple[_Place, str, str], DeadLetter | None] = {}
        self._failing_since: dict[tuple[_Place, str, str], int] = {}

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """Read the alerts of the last `max_age_ns` again: what receivers were told by those before the first record that comes."""
        self._told, self._past = Told(), []
        self._planned.clear()
        self._settled.clear()
        self._failing_since.clear()
        since_ns = max(self._clock_ns() - self._max_age_ns, 0)
        past: deque[tuple[_Place, v1.Alert]] = deque(maxlen=MOST_PAST)
        for topic, partition in sorted(owned):
            if topic == topics.ALERTS:
                past += _alerts(reader.read(topic, partition, since_ns=since_ns))
        self._past = [*past]

    def process(self, records: Sequence[Record]) -> list[Emitted]:
        self._remember(records)
        failures: dict[str, Later] = {}
        # all of it first: the message about the first alert of an incident counts those that came with it
        for record in records:
            if _place(record) not in self._planned:
                self._planned[_place(record)] = self._plan(record)
        for record in records:
            for notice in self._planned[_place(record)].notices:
                for channel in self._channels:
                    # one that has failed is skipped for the rest, so that its receiver sees the transitions in order
                    if channel.name not in failures and (failure := self._tell(channel, record, notice)) is not None:
                        failures[channel.name] = failure
        if failures:
            worst = min(failures.values(), key=lambda f: f.retry_after_seconds)
            raise Busy(worst.retry_after_seconds, "; ".join(f.reason for f in failures.values()))
        letters = [planned.letter for planned in self._planned.values()] + list(self._settled.values())
        self.dropped += Counter(planned.silent for planned in self._planned.values() if planned.silent)
        self._planned.clear()
        self._settled.clear()
        self._failing_since.clear()
        return [letter for letter in letters if letter is not None]

    def tick(self, tick: Tick) -> list[Emitted]:
        return []

    def _remember(self, records: Sequence[Record]) -> None:
        """Take in the past before the batch. Where it ends is not known to `restore`."""
        if not self._past:
            return
        first = {record.partition: record.offset for record in reversed(records)}
        for (partition, offset), alert in self._past:
            if offset < first.get(partition, 0) and (knows(self._told, alert) or not self._silent(alert, at_ns=alert.at_ns)):
                take(self._told, alert)
        self._past = [one for one in self._past if one[0][0] not in first]

    def _plan(self, record: Record) -> _Planned:
        try:
            alert = decode(record)
            assert isinstance(alert, v1.Alert)  # the topic's message; a null value is Rejected
            checked_time(alert.at_ns)
        except Rejected as rejected:
            return _Planned(letter=DeadLetter(record, rejected.reason))
        # The end of what receivers know of is told, whatever has become of it since.
        ends = alert.status == _RESOLVED and knows(self._told, alert)
        if not ends and (reason := self._silent(alert, at_ns=self._clock_ns())):
            return _Planned(silent=reason)
        notices = tuple(take(self._told, alert))
        return _Planned(notices, "" if notices else "joined")

    def _silent(self, alert: v1.Alert, *, at_ns: int) -> str:
        """Why this transition is not told at that time, or ""."""
        if alert.mode == v1.AlertMode.ALERT_MODE_SHADOW:
            return "shadow"
        if alert.status == _RESOLVED and not alert.HasField("fired_at_ns"):
            return "never_fired"
        if alert.status not in (v1.AlertStatus.ALERT_STATUS_FIRING, _RESOLVED):
            return "pending"
        if alert.severity and alert.severity < self._min_rank:
            return "severity"
        if at_ns - alert.at_ns > self._max_age_ns:
            return "too_old"
        return ""

    def _tell(self, channel: Channel, record: Record, notice: Notice) -> Later | None:
        alert = notice.alert
        key = (_place(record), channel.name, alert.episode)
        if key in self._settled:
            return None
        letter: DeadLetter | None = None
        try:
            channel.deliver(alert, notice.incident.members)
            self.delivered_total += 1
        except Refused as refused:
            letter = DeadLetter(record, f"{transition_id(alert)} not delivered: {refused.reason}")
        except Later as later:
            now = self._clock_ns()
            if now - self._failing_since.setdefault(key, now) < self._give_up_ns:
                return later
            letter = DeadLetter(record, f"{transition_id(alert)} not delivered in {self._give_up_ns / 1e9:g} s: {later.reason}")
        self._settled[key] = letter
        return None


def _place(record: Record) -> _Place:
    return record.partition, record.offset


def _alerts(records: Iterator[Record]) -> Iterator[tuple[_Place, v1.Alert]]:
    """What is well formed; the rest went to the dead letters when it came."""
    for record in records:
        try:
            alert = decode(record)
        except Rejected:
            continue
        if isinstance(alert, v1.Alert):
            yield _place(record), alert
