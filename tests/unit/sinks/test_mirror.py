"""The JSON mirror: the same bytes for the same alert, readable by anyone, marked as CloudEvents."""

from __future__ import annotations

import json

from schemas import topics
from schemas.codec import MAJOR, MINOR
from schemas.flow import DeadLetter, Out
from schemas.telemetry import v1
from sinks.mirror import MirrorProcessor
from tests.fakes.store_messages import record

AT = 1_800_000_000_123_456_789


def alert() -> v1.Alert:
    """A firing alert with most of what one can have."""
    found = v1.Alert(fingerprint="f00d", episode=f"f00d-{AT}", rule="hot", cluster="c1", node="n1", entity="device/nvidia:a", link=["l"])
    found.status, found.severity = v1.AlertStatus.ALERT_STATUS_FIRING, v1.Severity.SEVERITY_CRITICAL
    found.started_at_ns = found.fired_at_ns = found.at_ns = AT
    found.value, found.limit, found.unit, found.summary = 91.5, float("inf"), "Cel", "heiß\n"
    found.evidence.update({"b": "2", "a": "1"})
    found.owner.CopyFrom(v1.Workload(namespace="prod", workload="chat"))
    return found


def test_an_alert_becomes_json_with_times_in_both_forms() -> None:
    (out,) = MirrorProcessor().process([record(topics.ALERTS, alert())])

    assert isinstance(out, Out)
    assert (out.topic, out.key) == (topics.ALERTS_JSON, b"f00d")
    document = json.loads(out.value or b"")
    assert document["at"] == "2027-01-15T08:00:00.123456789Z"
    assert document["at_ns"] == AT
    assert document["status"] == "firing"
    assert document["severity"] == "critical"
    assert document["simulated"] is False
    assert document["owner"] == {"namespace": "prod", "workload": "chat"}
    assert document["links"] == ["l"]
    assert "limit" not in document
    assert "resolved_at" not in document
    assert b"\n" not in (out.value or b"")


def test_headers_are_cloudevents() -> None:
    (out,) = MirrorProcessor(source="/site/x").process([record(topics.ALERTS, alert())])
    assert isinstance(out, Out)
    assert dict(out.headers) == {
        "content-type": b"application/json",
        "schema-version": f"{MAJOR}.{MINOR}".encode(),
        "ce_specversion": b"1.0",
        "ce_id": f"f00d-{AT}-firing".encode(),
        "ce_source": b"/site/x/c1",
        "ce_type": b"xpulse.alert.firing",
        "ce_subject": b"device/nvidia:a",
        "ce_time": b"2027-01-15T08:00:00.123456789Z",
        "ce_partitionkey": b"f00d",
    }


def test_a_repeat_has_the_same_bytes() -> None:
    one = MirrorProcessor().process([record(topics.ALERTS, alert(), 1)])
    assert MirrorProcessor().process([record(topics.ALERTS, alert(), 2)]) == one


def test_what_cannot_be_an_alert_is_a_dead_letter() -> None:
    good = record(topics.ALERTS, alert())
    late = alert()
    late.at_ns = 2**64 - 1
    found = MirrorProcessor().process([good._replace(value=b""), record(topics.ALERTS, late), good])
    assert [type(each) for each in found] == [DeadLetter, DeadLetter, Out]
