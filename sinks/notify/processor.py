"""The notifier's role: tells every channel when an alert fires and when it resolves, each channel in order and on its own.

After a crash a notification may come again, with the same Idempotency-Key; none is lost. A channel that fails holds the batch
(Busy), the others are not told twice; after `give_up_seconds` its notification goes to the dead letters and it is tried with the next.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from schemas import topics
from schemas.codec import decode
from schemas.flow import Busy, DeadLetter, Emitted, Rejected
from schemas.telemetry import v1
from sinks.alert_json import transition_id
from sinks.notify.channel import Later, Refused
from sinks.points import checked_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from schemas.flow import Partition, Reader, Record, Tick
    from sinks.notify.channel import Channel

Severity = Literal["info", "warning", "critical"]
_RANK: Final[dict[Severity, int]] = {
    "info": v1.Severity.SEVERITY_INFO,
    "warning": v1.Severity.SEVERITY_WARNING,
    "critical": v1.Severity.SEVERITY_CRITICAL,
}
_Key = tuple[int, int, str]


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
        # of the batch at hand only: what was settled before a Busy, and since when something fails
        self._settled: dict[_Key, DeadLetter | None] = {}
        self._failing_since: dict[_Key, int] = {}

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """No state beyond the batch at hand."""
        self._settled.clear()
        self._failing_since.clear()

    def process(self, records: Sequence[Record]) -> list[Emitted]:
        letters: list[Emitted] = []
        skipped: Counter[str] = Counter()
        failures: dict[str, Later] = {}
        for record in records:
            try:
                alert = decode(record)
                assert isinstance(alert, v1.Alert)  # the topic's message; a null value is Rejected
                checked_time(alert.at_ns)
            except Rejected as rejected:
                letters.append(DeadLetter(record, rejected.reason))
                continue
            if reason := self._silent(alert):
                skipped[reason] += 1
                continue
            for channel in self._channels:
                # one that has failed is skipped for the rest, so that its receiver sees the transitions in order
                if channel.name not in failures and (failure := self._tell(channel, record, alert)) is not None:
                    failures[channel.name] = failure
        if failures:
            worst = min(failures.values(), key=lambda f: f.retry_after_seconds)
            raise Busy(worst.retry_after_seconds, "; ".join(f.reason for f in failures.values()))
        letters += [letter for letter in self._settled.values() if letter is not None]
        self._settled.clear()
        self._failing_since.clear()
        self.dropped += skipped
        return letters

    def tick(self, tick: Tick) -> list[Emitted]:
        return []

    def _silent(self, alert: v1.Alert) -> str:
        """Why this transition is not told, or ""."""
        if alert.mode == v1.AlertMode.ALERT_MODE_SHADOW:
            return "shadow"
        if alert.status == v1.AlertStatus.ALERT_STATUS_RESOLVED and not alert.HasField("fired_at_ns"):
            return "never_fired"
        if alert.status not in (v1.AlertStatus.ALERT_STATUS_FIRING, v1.AlertStatus.ALERT_STATUS_RESOLVED):
            return "pending"
        if alert.severity and alert.severity < self._min_rank:
            return "severity"
        if self._clock_ns() - alert.at_ns > self._max_age_ns:
            return "too_old"
        return ""

    def _tell(self, channel: Channel, record: Record, alert: v1.Alert) -> Later | None:
        key = (record.partition, record.offset, channel.name)
        if key in self._settled:
            return None
        letter: DeadLetter | None = None
        try:
            channel.deliver(alert)
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
