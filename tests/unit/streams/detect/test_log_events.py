"""Events of the kernel log: each rule fires and clears, symptoms are silent, later versions of an event go on, old ones count from now."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.flow import Tick
from schemas.telemetry import v1
from streams.operators.detect import events
from streams.rules import load_rules
from streams.rules.load import RulesError
from tests.unit.streams.detect.given import TIMES, at, rule, said

RULES = load_rules()
HOUR, DAY = 3600, 86_400


def event(
    seconds: float, kind: str, severity: str = "CRITICAL", event_class: str = "HARDWARE", *, uid: str = "nvidia:GPU-1", **more: Any
) -> v1.DeviceEvent:
    details = {name: str(value) for name, value in more.pop("details", {}).items()}
    last = more.pop("last", seconds)
    return v1.DeviceEvent(
        cluster="c1",
        node="n1",
        uid=uid,
        source="kernel",
        kind=f"DEVICE_EVENT_KIND_{kind}",
        at_ns=at(seconds),
        last_at_ns=at(last),
        severity=f"SEVERITY_{severity}",
        event_class=f"EVENT_CLASS_{event_class}",
        text="said so",
        details=details,
        **more,
    )


def happened(*items: v1.DeviceEvent | events.Seen | Tick) -> list[v1.Finding]:
    return events.step(events.start(RULES, TIMES), items)[1]


def xid(seconds: float, code: int = 79, *words: str, **more: Any) -> v1.DeviceEvent:
    return event(seconds, "XID", *words, code=code, **more)


@pytest.mark.parametrize(
    ("raised", "wanted"),
    [
        (xid(0), "xid_critical"),
        (xid(0, 54, "WARNING"), "xid_warning"),
        (xid(0, 13, "WARNING", "APPLICATION"), "xid_application"),
        (xid(0, 43, "INFO", "APPLICATION", count=10), "xid_application_repeated"),
        (event(0, "SXID", code=20034), "nvswitch_fatal"),
        (event(0, "VENDOR_LOG"), "driver_log_critical"),
        (event(0, "LOST"), "device_lost"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_rule_fires_and_is_ended_by_a_reload_of_the_driver(raised: v1.DeviceEvent, wanted: str) -> None:
    found = happened(raised, event(60, "DRIVER_RELOADED", "INFO", "INFORMATIONAL", uid=""))
    assert said(found) == [(0, wanted, True), (60, wanted, False)]
    assert found[0].evidence["source"] == "kernel"


def test_a_rule_ends_by_itself_in_time() -> None:
    found = happened(xid(0, 13, "WARNING", "APPLICATION"), Tick(at(HOUR - 1)), Tick(at(HOUR)))
    assert [(s, a) for s, _, a in said(found)] == [(0, True), (HOUR - 1, True), (HOUR, False)]


def test_an_event_may_say_a_shorter_time_and_no_longer_one() -> None:
    for quiet, wanted in ((600, 600), (10 * DAY, DAY)):
        found = happened(xid(0, details={"quiet_seconds": quiet}), Tick(at(wanted - 1)), Tick(at(wanted)))
        assert (said(found)[-1]) == (wanted, "xid_critical", False)


@pytest.mark.parametrize(
    "silent",
    [
        xid(0, caused_by="another"),
        xid(0, 45, "INFO", "FOLLOWS_ANOTHER"),
        xid(0, 63, "INFO", "INFORMATIONAL"),
        xid(0, 43, "INFO", "APPLICATION", count=9),
        event(0, "SXID", "INFO", "INFORMATIONAL", code=12028),
        event(0, "VENDOR_LOG", "WARNING"),
        event(0, "LOST", caused_by="an Xid 79"),
    ],
    ids=["follows", "symptom", "informational", "few", "nonfatal", "warning", "lost_by_xid"],
)
def test_what_raises_nothing(silent: v1.DeviceEvent) -> None:
    assert happened(silent) == []


def test_a_later_version_goes_on() -> None:
    first, later = xid(0, id="e", count=1), xid(0, id="e", count=500, last=HOUR)
    found = happened(first, later, Tick(at(DAY)), Tick(at(HOUR + DAY)))
    assert [(s, a) for s, _, a in said(found)] == [(0, True), (HOUR, True), (DAY, True), (HOUR + DAY, False)]
    assert {f.since_ns for f in found} == {at(0)}
    assert (found[1].evidence["count"], found[1].evidence["event"]) == ("500", "e")


def test_a_version_that_became_critical_raises() -> None:
    found = happened(
        xid(0, 94, "WARNING", "APPLICATION", id="e"),
        xid(0, 94, "CRITICAL", "APPLICATION", id="e", action=v1.RecommendedAction.RECOMMENDED_ACTION_REBOOT_NODE),
    )
    assert [(name, f.evidence.get("action", "")) for f, (_, name, _) in zip(found, said(found), strict=True)] == [
        ("xid_application", ""), ("xid_critical", "reboot_node"),
    ]  # fmt: skip


def test_the_same_version_again_raises_nothing_after_its_end() -> None:
    recovered = event(10, "RECOVERED", "INFO", "INFORMATIONAL", code=154)
    assert said(happened(xid(0), recovered, xid(0))) == [(0, "xid_critical", True), (10, "xid_critical", False)]
    assert said(happened(xid(0), recovered, xid(0, last=20)))[-1] == (20, "xid_critical", True)


def test_a_recovery_is_of_its_device_even_where_only_the_address_is_known() -> None:
    other = xid(0)
    nameless = event(5, "RECOVERED", "INFO", "INFORMATIONAL", uid="", bdf="0000:3b:00.0")
    assert [a for _, _, a in said(happened(other, nameless))] == [True]


def test_a_reload_that_another_source_saw_ends_only_what_that_source_said() -> None:
    reload = event(5, "DRIVER_RELOADED", "INFO", "INFORMATIONAL", uid="")
    reload.source = "nvidia"
    assert [a for _, _, a in said(happened(xid(0), reload))] == [True]


def test_what_was_old_when_it_was_read_lasts_from_then() -> None:
    seen = at(3 * DAY)
    found = happened(xid(0, details={"seen_at_ns": seen, "backlog": "true"}), Tick(at(3 * DAY + 10)), Tick(at(4 * DAY)))
    assert [(s, a) for s, _, a in said(found)] == [(3 * DAY, True), (4 * DAY, False)]
    assert found[0].since_ns == at(0)
    assert found[0].valid_until_ns > seen


@pytest.mark.parametrize(
    ("code", "wanted"), [(79, ["xid_critical"]), (74, ["xid_critical"]), (45, []), (63, []), (13, ["xid_application"])]
)
def test_an_xid_without_a_class_is_judged_by_the_catalogue(code: int, wanted: list[str]) -> None:
    """Of an older agent, or of a source that gives numbers only; its severity is a guess."""
    assert [name for _, name, _ in said(happened(xid(0, code, "WARNING", "UNSPECIFIED")))] == wanted


def test_a_loss_that_the_log_told_is_ended_by_a_sample_of_whoever_reads_the_card() -> None:
    found = happened(event(0, "LOST"), events.Seen("c1", "n1", "nvidia:GPU-1", "nvidia", at(5)))
    assert said(found) == [(0, "device_lost", True), (5, "device_lost", False)]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ({"severities": ["bad"]}, "no severity 'bad'; nearest|one of"),
        ({"classes": ["hardwear"]}, "no event class 'hardwear'; nearest: hardware"),
        ({"seen_at_least": 0}, "seen_at_least"),
    ],
)
def test_wrong_words_are_named(condition: dict[str, Any], wanted: str) -> None:
    with pytest.raises(RulesError, match=wanted):
        rule({"type": "event", "raised_by": ["xid"], "lasts_seconds": 5, **condition})
