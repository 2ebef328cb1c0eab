"""The notifier: who is told what, in which order, and what happens where a receiver fails."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from datetime import UTC

import pytest

from schemas import topics
from schemas.flow import Busy, DeadLetter, Record
from schemas.telemetry import v1
from sinks.notify.channel import Channel, Later, Refused
from sinks.notify.console import Console, line
from sinks.notify.processor import NotifyProcessor
from sinks.notify.webhook import Webhook, _wait
from tests.fakes.influx_http import OK, FakeInflux, serving
from tests.fakes.store_messages import record

T0 = 1_800_000_000_000_000_000
FIRING, RESOLVED = v1.AlertStatus.ALERT_STATUS_FIRING, v1.AlertStatus.ALERT_STATUS_RESOLVED
CRITICAL = v1.Severity.SEVERITY_CRITICAL


def alert(
    status: v1.AlertStatus = FIRING,
    *,
    name: str = "f",
    severity: v1.Severity = CRITICAL,
    mode: v1.AlertMode | None = None,
    incident: str = "",
) -> v1.Alert:
    """A transition of the alert `name`."""
    found = v1.Alert(fingerprint=name, episode=f"{name}-{T0}", status=status, rule="hot", cluster="c", node="n", entity="device/nvidia:a")
    found.incident = f"{incident}-{T0}" if incident else ""
    found.severity, found.at_ns, found.started_at_ns, found.fired_at_ns = severity, T0, T0, T0
    found.summary, found.value, found.limit, found.unit = "too hot", 91.5, 90, "Cel"
    found.mode = v1.AlertMode.ALERT_MODE_NOTIFY if mode is None else mode
    return found


def records(*alerts: v1.Alert) -> list[Record]:
    """Alerts as the bus gives them."""
    return [record(topics.ALERTS, one, offset) for offset, one in enumerate(alerts)]


class Receiver:
    """A Channel that fails as told: one entry of `failures` per delivery, None delivers."""

    def __init__(self, name: str = "receiver", *failures: Later | Refused | None) -> None:
        self.name = name
        self.failures = list(failures)
        self.got: list[str] = []

    def deliver(self, alert: v1.Alert, members: int = 1) -> None:
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        self.got.append(f"{alert.fingerprint} {v1.AlertStatus.Name(alert.status).rpartition('_')[2]}{f' {members}' if members > 1 else ''}")


def notifier(*channels: Channel, now_ns: int = T0, **settings: object) -> NotifyProcessor:
    """A notifier whose clock stands."""
    return NotifyProcessor(channels, clock_ns=lambda: now_ns, **settings)  # type: ignore[arg-type]  # keywords of the class


def test_firing_and_resolved_are_told_pending_and_shadow_are_not() -> None:
    receiver = Receiver()
    role = notifier(receiver, min_severity="warning")
    never_fired = alert(RESOLVED, name="never")
    never_fired.ClearField("fired_at_ns")
    silent = [
        alert(v1.AlertStatus.ALERT_STATUS_PENDING),
        alert(mode=v1.AlertMode.ALERT_MODE_SHADOW),
        alert(severity=v1.Severity.SEVERITY_INFO),
        never_fired,
    ]

    assert role.process(records(*silent, alert(), alert(RESOLVED))) == []

    assert receiver.got == ["f FIRING", "f RESOLVED"]
    assert role.dropped == {"pending": 1, "shadow": 1, "severity": 1, "never_fired": 1}


def test_the_past_is_not_reported() -> None:
    receiver = Receiver()
    role = notifier(receiver, now_ns=T0 + 61, max_age_ns=60)
    role.process(records(alert()))
    assert receiver.got == []
    assert role.dropped == {"too_old": 1}


def test_a_receiver_that_fails_is_tried_again_in_order_and_the_others_are_told_once() -> None:
    slow, quick = Receiver("slow", Later(7, "away")), Receiver("quick")
    role = notifier(slow, quick)
    batch = records(alert(), alert(RESOLVED))

    with pytest.raises(Busy, match="away") as busy:
        role.process(batch)
    assert busy.value.retry_after_seconds == 7
    assert slow.got == []
    assert role.process(batch) == []

    assert slow.got == ["f FIRING", "f RESOLVED"]
    assert quick.got == ["f FIRING", "f RESOLVED"]


def test_a_refusal_is_a_dead_letter_and_the_next_goes_on() -> None:
    receiver = Receiver("r", Refused("no such place"))
    batch = records(alert(name="a"), alert(name="b"))
    (letter,) = notifier(receiver).process(batch)
    assert isinstance(letter, DeadLetter)
    assert letter.record is batch[0]
    assert letter.reason == f"a-{T0}-firing not delivered: no such place"
    assert receiver.got == ["b FIRING"]


def test_a_receiver_that_stays_away_is_given_up() -> None:
    receiver = Receiver("r", *[Later(1, "away")] * 3)
    now = [T0]
    role = NotifyProcessor([receiver], give_up_ns=10, clock_ns=lambda: now[0])
    batch = records(alert())
    for _ in range(2):
        with pytest.raises(Busy):
            role.process(batch)
        now[0] += 5
    (letter,) = role.process(batch)
    assert isinstance(letter, DeadLetter)
    assert "not delivered in" in letter.reason


def test_malformed_alerts_are_dead_letters() -> None:
    batch = records(alert())
    bad = batch[0]._replace(value=None)
    assert notifier(Receiver()).process([bad]) == [DeadLetter(bad, "null value on a topic that is not compacted")]


def test_the_console_line_is_readable_safe_and_marked() -> None:
    stream = io.StringIO()
    shown = alert()
    shown.simulated = True
    shown.summary = "hot\x1b[2J\nFIRING critical forged"
    Console(stream, UTC).deliver(shown)

    assert stream.getvalue() == (
        "2027-01-15 08:00:00+0000  FIRING  critical  hot  device/nvidia:a  hot [2J FIRING critical forged"
        "  (91.5, limit 90 Cel)  [simulated]\n"
    )


def test_a_lost_signal_is_not_shown_as_recovered() -> None:
    lost = alert(RESOLVED)
    lost.resolve_reason = v1.ResolveReason.RESOLVE_REASON_SIGNAL_LOST
    assert "[signal lost" in line(lost, UTC)


def test_a_webhook_posts_signed_json_with_a_key_that_stays() -> None:
    with serving(FakeInflux()) as fake:
        hook = Webhook(f"{fake.url}/hook?token=t", headers={"X-Team": "ops"}, secret="k", timeout_seconds=2)
        hook.deliver(alert())
        hook.deliver(alert())

    first, second = fake.requests
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] == f"f-{T0}-firing"
    body = first.lines[0].encode()
    assert first.headers["X-XPulse-Signature"] == "sha256=" + hmac.new(b"k", body, hashlib.sha256).hexdigest()
    assert first.headers["X-Team"] == "ops"
    assert json.loads(body)["status"] == "firing"
    assert "token" not in hook.name


@pytest.mark.parametrize("status", [0, 301, 408, 429, 500, 503])
def test_a_webhook_that_cannot_now_is_asked_later(status: int) -> None:
    with serving(FakeInflux(lambda _: (status, {"Retry-After": "9", "Location": "/"}, ""))) as fake:
        hook = Webhook(fake.url, headers={}, secret="", timeout_seconds=2)
        with pytest.raises(Later) as later:
            hook.deliver(alert())
    assert later.value.retry_after_seconds == (5 if status == 0 else 9)
    assert len(fake.requests) == 1


@pytest.mark.parametrize("asked", ["\xb2", "soon", "-1", ""])
def test_a_wait_that_is_no_number_is_our_own(asked: str) -> None:
    assert _wait(asked) == 5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_webhook_that_refuses_is_final(status: int) -> None:
    with serving(FakeInflux(lambda lines: (status, {}, "") if lines else OK)) as fake, pytest.raises(Refused, match=str(status)):
        Webhook(fake.url, headers={}, secret="", timeout_seconds=2).deliver(alert())
