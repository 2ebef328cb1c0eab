"""The alert role: findings in, one record per transition of an alert out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from schemas import topics
from schemas.codec import decode
from schemas.flow import DeadLetter, Emitted, Partition, Reader, Record, Rejected, Tick
from schemas.telemetry import v1
from streams.operators.alert import (
    Effect,
    Grouping,
    Lifecycle,
    Observed,
    Transition,
    adopt,
    complete,
    empty,
    lay_out,
    recall,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.protobuf.message import Message

    from streams.settings import Alerting

_LOOK_BACK_NS: Final = 3600 * 1_000_000_000
"""Alerts this much older than the last written state are read again: input whose commit was lost is younger by far, so that an
episode which began and ended since then is recognised when its findings are replayed."""

_IN_FLIGHT_NS: Final = 60 * 1_000_000_000
"""An owed alert is looked for from this long before the record that says it is owed: clocks of two hosts differ."""

_RESOLVED: Final = v1.AlertStatus.ALERT_STATUS_RESOLVED


class AlertProcessor:
    """Keeps the life of every alert. Its state is `xpulse.alert-state`, read to the end on assignment.

    What a restore finds owed is returned by the next `process` or `tick`, before anything else.
    """

    role: Final = "alert"
    inputs: Final = (topics.FINDINGS,)
    rewind_seconds: Final = 0.0
    silent_rebuild: Final = False

    def __init__(self, rules: Lifecycle) -> None:
        self._rules = rules
        self._state = empty(rules)
        self._owed: list[Emitted] = []
        self._repeated = 0
        self._unreadable = 0

    @classmethod
    def of(cls, settings: Alerting) -> AlertProcessor:
        return cls(
            Lifecycle(
                keep_firing_ns=round(settings.keep_firing_seconds * 1e9),
                grace_ns=round(settings.signal_lost_grace_seconds * 1e9),
                save_ns=round(settings.save_seconds * 1e9),
                remembered=settings.remembered_alerts,
                grouping=Grouping(
                    window_ns=round(settings.incident_window_seconds * 1e9), linger_ns=round(settings.incident_linger_seconds * 1e9)
                ),
            )
        )

    @property
    def dropped(self) -> Counter[str]:
        """`repeated`: findings that said nothing new, of a replay or of a restarted detector; `state_unreadable`: records that a restore
        could not read."""
        return +Counter({"repeated": self._repeated + self._state.repeated, "state_unreadable": self._unreadable})

    @property
    def open_alerts(self) -> int:
        """Episodes that are pending or firing."""
        return len(self._state.open)

    @property
    def open_incidents(self) -> int:
        """Incidents with an alert that fires."""
        return self._state.incidents.open

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """Forget everything; where findings are owned, take over the written episodes and finish what was owed.

        A malformed record is passed over, and counted: nothing of ours can be read out of it.
        """
        self._repeated += self._state.repeated
        self._state, self._owed = empty(self._rules), []
        if not any(p.topic == topics.FINDINGS for p in owned):
            return
        written: dict[bytes, tuple[v1.AlertState, int]] = {}
        newest_ns = 0
        for record, message in self._read(reader, topics.ALERT_STATE):
            newest_ns = max(newest_ns, record.timestamp_ns)
            if isinstance(message, v1.AlertState):
                written[record.key or b""] = message, record.timestamp_ns
            else:
                written.pop(record.key or b"", None)
        if not newest_ns:
            return
        owed = {key: state for key, (state, _) in written.items() if state.unpublished}
        since_ns = min([newest_ns - _LOOK_BACK_NS, *(written[key][1] - _IN_FLIGHT_NS for key in owed)])
        published: set[tuple[str, str, int]] = set()
        for _, message in self._read(reader, topics.ALERTS, since_ns=max(since_ns, 0)):
            if isinstance(message, v1.Alert):
                published.add(_transition(message))
                if message.status == _RESOLVED:
                    recall(self._state, message)
        for state, _ in written.values():
            if state.unpublished == _RESOLVED:
                recall(self._state, state.alert)
            else:
                adopt(self._state, state)
        done = [state for state in owed.values() if _transition(state.alert) in published]
        missing = [Transition(state) for state in owed.values() if _transition(state.alert) not in published]
        self._owed = complete(done) + lay_out(missing)

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        emitted, self._owed = self._owed, []
        effects: list[Effect] = []
        for record in records:
            try:
                message = decode(record)
            except Rejected as rejected:
                emitted.append(DeadLetter(record, rejected.reason))
                continue
            if isinstance(message, v1.Finding):
                effects += step(self._state, [Observed(message, record.offset)])[1]
        return emitted + lay_out(effects)

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        emitted, self._owed = self._owed, []
        return emitted + lay_out(step(self._state, [tick])[1])

    def _read(self, reader: Reader, topic: str, *, since_ns: int | None = None) -> Iterator[tuple[Record, Message | None]]:
        for partition in range(reader.partitions(topic)):
            for record in reader.read(topic, partition, since_ns=since_ns):
                try:
                    yield record, decode(record)
                except Rejected:
                    self._unreadable += 1


def _transition(alert: v1.Alert) -> tuple[str, str, int]:
    return alert.fingerprint, alert.episode, alert.status
