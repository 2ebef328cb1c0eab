"""What receivers are told of incidents: once, worse, over; and the same after a restart at any record."""

from __future__ import annotations

import json
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import topics
from schemas.flow import Busy, Partition
from schemas.telemetry import v1
from sinks.notify.channel import Later
from sinks.notify.console import line
from sinks.notify.webhook import Webhook
from tests.fakes.influx_http import FakeInflux, serving
from tests.fakes.log_reader import LogReader
from tests.unit.sinks.test_notify import CRITICAL, FIRING, RESOLVED, T0, Receiver, alert, notifier, records

WARNING = v1.Severity.SEVERITY_WARNING
OWNED = frozenset({Partition(topics.ALERTS, 0)})


def member(name: str, status: v1.AlertStatus = FIRING, severity: v1.Severity = WARNING, *, incident: str = "a") -> v1.Alert:
    return alert(status, name=name, severity=severity, incident=incident)


def told(*alerts: v1.Alert) -> list[str]:
    """What a receiver is told when the alerts come one by one."""
    receiver = Receiver()
    role = notifier(receiver)
    for record in records(*alerts):
        role.process([record])
    return receiver.got


def test_sixty_four_alerts_of_one_incident_are_one_message_with_their_number_and_one_end() -> None:
    names = ["a", *(f"card{n}" for n in range(63))]
    receiver = Receiver()
    role = notifier(receiver)
    role.process(records(*map(member, names)))
    assert receiver.got == ["a FIRING 64"]
    assert role.dropped == {"joined": 63}
    role.process([record._replace(offset=64 + n) for n, record in enumerate(records(*(member(name, RESOLVED) for name in names)))])
    assert receiver.got == ["a FIRING 64", "a RESOLVED 64"]


def test_two_incidents_are_two_messages() -> None:
    assert told(member("a"), member("b", incident="b")) == ["a FIRING", "b FIRING"]


def test_what_is_more_severe_is_told_and_its_end_too() -> None:
    story = [member("a"), member("b", severity=CRITICAL), member("c", severity=CRITICAL)]
    assert told(*story) == ["a FIRING", "b FIRING 2"]
    story += [member("b", RESOLVED, CRITICAL)]
    assert told(*story) == ["a FIRING", "b FIRING 2"], "another that is as severe is still open"
    story += [member("c", RESOLVED, CRITICAL)]
    assert told(*story) == ["a FIRING", "b FIRING 2", "b RESOLVED 3"]
    story += [member("d", severity=CRITICAL)]
    assert told(*story)[3:] == ["d FIRING 4"], "receivers believe that the worst is over"


def test_the_first_alert_ends_with_its_incident() -> None:
    story = [member("a"), member("b"), member("a", RESOLVED)]
    assert told(*story) == ["a FIRING"]
    assert told(*story, member("b", RESOLVED)) == ["a FIRING", "a RESOLVED 2"]


def test_an_incident_that_begins_again_is_told_again() -> None:
    assert told(member("a"), member("a", RESOLVED), member("b")) == ["a FIRING", "a RESOLVED", "b FIRING"]


def test_what_is_not_told_keeps_nobody_from_being_told() -> None:
    shadow = member("a")
    shadow.mode = v1.AlertMode.ALERT_MODE_SHADOW
    assert told(shadow, member("b")) == ["b FIRING"]


def test_the_end_of_an_alert_that_was_told_is_told_whatever_became_of_it() -> None:
    over = member("a", RESOLVED)
    over.mode = v1.AlertMode.ALERT_MODE_SHADOW
    assert told(member("a"), over) == ["a FIRING", "a RESOLVED"]


def test_the_end_of_an_alert_that_nobody_remembers_is_told() -> None:
    assert told(member("b", RESOLVED)) == ["b RESOLVED"]


def test_a_receiver_that_fails_is_told_the_same_later() -> None:
    receiver = Receiver("slow", None, Later(5, "away"))
    role = notifier(receiver)
    batch = records(member("a"), member("b"), member("c", severity=CRITICAL), member("d"))
    with pytest.raises(Busy):
        role.process(batch)
    role.process(batch)
    assert receiver.got == ["a FIRING 4", "c FIRING 4"]
    assert role.dropped == {"joined": 2}


transitions = st.lists(
    st.builds(
        member,
        st.sampled_from(["a", "b", "c", "d"]),
        st.sampled_from([FIRING, RESOLVED]),
        st.sampled_from([WARNING, CRITICAL]),
        incident=st.sampled_from(["a", "b"]),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(transitions, st.data())
def test_a_restart_after_any_record_changes_nothing(alerts: list[v1.Alert], data: st.DataObject) -> None:
    batch = [record._replace(timestamp_ns=T0) for record in records(*alerts)]
    whole = told(*alerts)
    cut = data.draw(st.integers(0, len(batch)))
    receiver = Receiver()
    for part in (batch[:cut], batch[cut:]):
        role = notifier(receiver)
        role.restore(LogReader({(topics.ALERTS, 0): batch}), OWNED)  # what is still to come is on the bus already
        for record in part:
            role.process([record])
    assert receiver.got == whole


@given(transitions)
def test_receivers_are_never_left_with_an_alert_that_does_not_end(alerts: list[v1.Alert]) -> None:
    open_: dict[str, v1.Alert] = {}
    past: set[str] = set()
    story = []
    for one in alerts:  # as the alert role tells: an episode fires, and then ends; its name is never given a second time
        if (one.status == RESOLVED) == (one.episode in open_) and one.episode not in past:
            if one.status == RESOLVED:
                first = open_.pop(one.episode)
                past.add(one.episode)
                one.incident, one.severity = first.incident, first.severity
            else:
                open_[one.episode] = one
            story.append(one)
    for one in open_.values():
        over = v1.Alert()
        over.CopyFrom(one)
        over.status = RESOLVED
        story.append(over)
    got = [words.split()[:2] for words in told(*story)]
    fired = [name for name, status in got if status == "FIRING"]
    ended = [name for name, status in got if status == "RESOLVED"]
    assert sorted(fired) == sorted(ended)
    assert bool(fired) == bool(story)


def test_the_number_is_in_the_line_and_in_the_document() -> None:
    assert line(member("a"), UTC, 64).endswith("[64 alerts in this incident]")
    assert "incident" not in line(member("a"), UTC)
    with serving(FakeInflux()) as fake:
        Webhook(fake.url, headers={}, secret="", timeout_seconds=2).deliver(member("b"), 64)
    document = json.loads(fake.requests[0].lines[0])
    assert document["members"] == 64
    assert document["incident"] == member("a").episode
