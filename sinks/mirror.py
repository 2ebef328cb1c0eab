"""The mirror's role: repeats every alert transition as JSON with CloudEvents headers, for consumers that know nothing of our schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas import topics
from schemas.codec import MAJOR, MINOR, decode
from schemas.flow import DeadLetter, Emitted, Out, Rejected
from schemas.telemetry import v1
from schemas.values import name_of
from sinks.alert_json import alert_document, encode, rfc3339, transition_id
from sinks.points import checked_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.flow import Headers, Partition, Reader, Record, Tick


class MirrorProcessor:
    """A Processor: one Out per alert, a function of the alert alone, so a repeat after a crash has the same bytes and ce_id."""

    role = "mirror"
    inputs = (topics.ALERTS,)
    rewind_seconds = 0.0
    silent_rebuild = False

    def __init__(self, *, source: str = "/xpulse") -> None:
        self._source = source

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """No state."""

    def process(self, records: Sequence[Record]) -> list[Emitted]:
        return [self._mirrored(record) for record in records]

    def tick(self, tick: Tick) -> list[Emitted]:
        return []

    def _mirrored(self, record: Record) -> Emitted:
        try:
            alert = decode(record)
            assert isinstance(alert, v1.Alert)  # the topic's message; a null value is Rejected
            for name in ("at_ns", "started_at_ns"):
                checked_time(getattr(alert, name))
            return Out(topics.ALERTS_JSON, alert.fingerprint.encode(), encode(alert_document(alert)), self._headers(alert))
        except Rejected as rejected:
            return DeadLetter(record, rejected.reason)

    def _headers(self, alert: v1.Alert) -> Headers:
        """CloudEvents 1.0, Kafka binding in binary mode."""
        texts = {
            "content-type": "application/json",
            "schema-version": f"{MAJOR}.{MINOR}",
            "ce_specversion": "1.0",
            "ce_id": transition_id(alert),
            "ce_source": f"{self._source}/{alert.cluster}",
            "ce_type": f"xpulse.alert.{name_of(v1.AlertStatus.DESCRIPTOR, alert.status)}",
            "ce_subject": alert.entity,
            "ce_time": rfc3339(alert.at_ns),
            "ce_partitionkey": alert.fingerprint,
        }
        return tuple((name, text.encode("utf-8", "replace")) for name, text in texts.items())
