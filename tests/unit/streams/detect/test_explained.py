"""An anomaly that a context event explains is said and not raised; what outlasts the explanation is raised."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.telemetry import v1
from streams.operators.detect import explained
from streams.operators.detect.explained import EVENTS_KEPT, Explained
from tests.unit.streams.detect.given import SECOND, at

DEVICE = "device/v:1"
NODE = "node/c1/n1"
SERVICE = "service/c1/ai/chat"
OWNER = v1.Workload(namespace="ai", service="chat", pod="chat-0")
ANOMALY = v1.FindingKind.FINDING_KIND_ANOMALY
EXPLAINING = ("deploy", "restart", "maintenance", "configuration")


def start(*owners: v1.Workload) -> Explained:
    return Explained(600 * SECOND, owners=lambda _: owners)


def event(
    seconds: float, entity: str = SERVICE, *, kind: str = "restart", node: str = "n1", cluster: str = "c1", **more: object
) -> v1.ContextEvent:
    number = v1.ContextEventKind.Value(f"CONTEXT_EVENT_KIND_{kind.upper()}")
    given_id = more.pop("id", f"{kind}-{entity}-{seconds}")
    return v1.ContextEvent(entity=entity, cluster=cluster, node=node, kind=number, at_ns=at(seconds), text="by hand", id=given_id, **more)  # type: ignore[arg-type]  # the rest of the message's fields


def finding(
    since: float, now: float | None = None, *, active: bool = True, kind: int = ANOMALY, entity: str = DEVICE, **more: object
) -> v1.Finding:
    return v1.Finding(
        rule="device_anomaly",
        cluster="c1",
        node="n1",
        entity=entity,
        kind=kind,  # type: ignore[arg-type]  # an enum's number
        active=active,
        since_ns=at(since),
        observed_at_ns=at(since if now is None else now),
        **more,  # type: ignore[arg-type]  # the rest of the message's fields
    )


def run(state: Explained, *items: v1.ContextEvent | v1.Finding) -> list[tuple[bool, str]]:
    """(active, explained_by) of what is sent."""
    return [(f.active, f.explained_by) for f in explained.step(state, items)[1]]


RAISED = (True, "")
OVER = (False, "")
RESTARTED = (False, f"restart of {SERVICE}: by hand")


def test_what_a_restart_of_its_service_explains_is_said_once_and_not_raised() -> None:
    state = start()
    assert run(state, event(0), finding(30, owner=OWNER)) == [RESTARTED]
    assert run(state, *(finding(30, now, owner=OWNER) for now in (45, 60, 600))) == []
    assert run(state, finding(30, 610, active=False, owner=OWNER)) == []


def test_what_outlasts_the_explanation_is_raised_with_it_as_evidence() -> None:
    state = start(OWNER)
    assert run(state, event(0), finding(30), finding(30, 629)) == [RESTARTED]
    (raised,) = explained.step(state, [finding(30, 630)])[1]
    assert raised.active
    assert raised.evidence["outlasted"] == f"restart of {SERVICE}: by hand"
    assert run(state, finding(30, 645), finding(30, 660, active=False)) == [RAISED, OVER]


def test_what_only_fades_does_not_outlast_and_what_comes_again_does() -> None:
    state = start(OWNER)
    fading = [finding(30, 30 + n, score=0.9 - n / 2000) for n in range(15, 900, 15)]
    assert run(state, event(0), finding(30, score=0.9), *fading) == [RESTARTED]
    assert run(state, finding(30, 930, score=0.8), finding(30, 945, score=0.79)) == [RAISED, RAISED]


def test_a_fading_one_that_ends_was_never_raised() -> None:
    state = start(OWNER)
    fading = [finding(30, 700, score=0.6), finding(30, 800, active=False, score=0.4)]
    assert run(state, event(0), finding(30, score=0.9), *fading) == [RESTARTED]


@pytest.mark.parametrize("kind", EXPLAINING)
def test_each_kind_explains(kind: str) -> None:
    ((active, by),) = run(start(), event(0, kind=kind), finding(10, owner=OWNER))
    assert not active
    assert by.startswith(f"{kind} of ")


@pytest.mark.parametrize(
    ("what", "sent"),
    [
        (event(0, DEVICE), False),
        (event(0, NODE), False),
        (event(0, NODE, node=""), False),
        (event(0, SERVICE, node=""), False),
        (event(0, "device/v:2"), True),
        (event(0, "node/c1/n2", node="n2"), True),
        (event(0, "service/c1/ai/search"), True),
        (event(0, SERVICE, cluster="c2"), True),
        (event(0, SERVICE, node="n2"), True),
    ],
    ids=[
        "device",
        "node",
        "node unnamed",
        "service everywhere",
        "other device",
        "other node",
        "other service",
        "other cluster",
        "elsewhere",
    ],
)
def test_events_explain_what_they_are_about(what: v1.ContextEvent, sent: bool) -> None:
    ((active, _),) = run(start(), what, finding(10, owner=OWNER))
    assert active == sent


@pytest.mark.parametrize(("since", "raised"), [(-61, True), (-60, False), (0, False), (600, False), (601, True)])
def test_an_event_explains_what_begins_soon_after_it(since: float, raised: bool) -> None:
    ((active, _),) = run(start(OWNER), event(0), finding(since))
    assert active == raised


def test_what_lasts_explains_until_it_is_over() -> None:
    state = start()
    assert [active for active, _ in run(state, event(0, NODE, kind="maintenance", until_ns=at(3600)), finding(3000), finding(4100))] == [
        False,
        False,
    ]
    assert run(state, finding(4300)) == [RAISED]


def test_an_event_that_comes_late_clears_what_was_raised() -> None:
    state = start(OWNER)
    assert run(state, finding(10), finding(10, 25)) == [RAISED, RAISED]
    assert run(state, event(0), finding(10, 40), finding(10, 55)) == [RESTARTED]
    assert run(state, finding(10, 610)) == [RAISED]


def test_a_raised_one_is_cleared_and_one_that_begins_anew_is_judged_anew() -> None:
    state = start(OWNER)
    assert run(state, finding(10), finding(10, 25, active=False)) == [RAISED, OVER]
    assert run(state, event(40), finding(50), finding(50, 60, active=False)) == [RESTARTED]
    assert run(state, finding(900), finding(900, 915, active=False)) == [RAISED, OVER]


def test_one_whose_end_was_never_said_does_not_hold_back_the_next() -> None:
    state = start(OWNER)
    assert run(state, event(0), finding(10)) == [RESTARTED]
    assert run(state, finding(5000), finding(5000, 5015)) == [RAISED, RAISED]


@pytest.mark.parametrize("kind", [k for k in v1.FindingKind.values() if k != ANOMALY])
def test_facts_are_never_held_back(kind: int) -> None:
    assert run(start(OWNER), event(0), finding(10, kind=kind), finding(10, 20, kind=kind, active=False)) == [RAISED, OVER]


def test_the_next_restart_does_not_prolong_the_explanation() -> None:
    state = start(OWNER)
    items = [item for second in range(0, 1200, 60) for item in (event(second), finding(10, second + 10))]
    sent = run(state, *items)
    assert sent[0] == RESTARTED
    assert RAISED in sent[1:]


def test_nothing_is_explained_where_the_setting_is_zero() -> None:
    (raised,) = explained.step(Explained(0, owners=lambda _: (OWNER,)), [event(0), finding(0)])[1][-1:]
    assert raised.active
    assert "outlasted" not in raised.evidence


def test_events_are_kept_once_and_the_newest_of_each_place() -> None:
    state = start(OWNER)
    run(state, *(event(s) for s in range(20)), *(event(s) for s in range(20)), event(-5000, id="late"))
    ((place, kept),) = state.events.items()
    assert place == ("c1", SERVICE, "n1")
    assert [e.at_ns for e in kept] == [at(s) for s in range(20 - EVENTS_KEPT, 20)]


@st.composite
def histories(draw: st.DrawFn) -> list[v1.ContextEvent | v1.Finding]:
    made: list[v1.ContextEvent | v1.Finding] = []
    makers: list[Callable[[], v1.ContextEvent | v1.Finding]] = [
        lambda: event(draw(st.integers(-100, 900)), draw(st.sampled_from([SERVICE, DEVICE, NODE])), kind=draw(st.sampled_from(EXPLAINING))),
        lambda: finding(
            draw(st.sampled_from([0, 10, 700])),
            draw(st.integers(700, 1500)),
            active=draw(st.booleans()),
            score=draw(st.sampled_from([0.5, 0.7, 0.9])),
            entity=draw(st.sampled_from([DEVICE, "device/v:2"])),
        ),
    ]
    for _ in range(draw(st.integers(0, 25))):
        made.append(draw(st.sampled_from(makers))())
    return made


def copies(items: list[v1.ContextEvent | v1.Finding]) -> list[v1.ContextEvent | v1.Finding]:
    return [type(item).FromString(item.SerializeToString()) for item in items]


@settings(max_examples=80, deadline=None)
@given(histories(), st.data())
def test_a_step_is_two_steps(items: list[v1.ContextEvent | v1.Finding], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(items)))
    one, two = start(OWNER), start(OWNER)
    whole = explained.step(one, copies(items))[1]
    assert whole == explained.step(two, copies(items[:cut]))[1] + explained.step(two, copies(items[cut:]))[1]
    assert dict(one.levels) == dict(two.levels)
    assert dict(one.events) == dict(two.events)
