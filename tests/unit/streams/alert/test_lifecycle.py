"""The life of an alert, as findings and time make it."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.flow import Tick
from schemas.telemetry import v1
from streams.operators.alert import Drop, Effect, Lifecycle, Observed, Save, Transition, adopt, empty, step
from streams.operators.alert.lifecycle import Item
from tests.unit.streams.alert.build import RULES, S, at, finding, name


def run(*items: v1.Finding | Tick, rules: Lifecycle = RULES) -> list[Effect]:
    return step(empty(rules), [i if isinstance(i, Tick) else Observed(i, n) for n, i in enumerate(items)])[1]


def story(effects: list[Effect]) -> list[tuple[str, float]]:
    """Transitions with their event time in seconds, and `dropped`."""
    found: list[tuple[str, float]] = []
    for effect in effects:
        if isinstance(effect, Transition):
            alert = effect.state.alert
            word = v1.AlertStatus.Name(alert.status)[13:].lower()
            if alert.resolve_reason:
                word = v1.ResolveReason.Name(alert.resolve_reason)[15:].lower()
            found.append((word, (alert.at_ns - at(0)) / S))
        elif isinstance(effect, Drop):
            found.append(("dropped", 0))
    return found


def tick(seconds: float) -> Tick:
    return Tick(at(seconds))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([finding(1)], [("firing", 1)]),
        ([finding(1), finding(2, False)], [("firing", 1), ("recovered", 2)]),
        ([finding(1, hold=60), tick(45)], []),
        ([finding(1, hold=60), finding(16, hold=60), finding(31, hold=60), tick(61)], [("firing", 61)]),
        ([finding(1, hold=60), finding(16, hold=60), finding(70, hold=60)], [("firing", 61)]),
        ([finding(1, hold=60), finding(30, False)], [("dropped", 0)]),
        ([finding(1, hold=60), tick(300)], [("dropped", 0)]),
        ([finding(1, clear=30), finding(10, False), tick(39)], [("firing", 1)]),
        ([finding(1, clear=30), finding(10, False), tick(99)], [("firing", 1), ("recovered", 40)]),
        ([finding(1, clear=30), finding(10, False), finding(20), tick(60)], [("firing", 1)]),
        ([finding(1, clear=30), finding(10, False), finding(50)], [("firing", 1), ("recovered", 40), ("firing", 50)]),
        ([finding(1), tick(50)], [("firing", 1)]),
        ([finding(1), tick(51)], [("firing", 1), ("signal_lost", 51)]),
        ([finding(1), finding(80), tick(100)], [("firing", 1)]),
        ([finding(1), finding(10, False), tick(500)], [("firing", 1), ("recovered", 10)]),
        ([finding(1, False), tick(500)], []),
        ([finding(5), finding(3, False), finding(5, False)], [("firing", 5)]),
        ([finding(5), finding(9, False), finding(7)], [("firing", 5), ("recovered", 9)]),
    ],
    ids=[
        "no hold fires at once",
        "no clear time resolves at once",
        "pending while it holds",
        "fires by time",
        "fires at the end of the hold, whenever seen",
        "a pending that clears is dropped",
        "a pending whose finding expired is dropped",
        "keeps firing until clear for long enough",
        "resolves at the end of the clear time",
        "active again while clearing",
        "cleared in full before it came again",
        "within the grace",
        "expired is lost, not recovered",
        "a late finding is no lost signal",
        "once clear it cannot be lost",
        "clear from the first",
        "older and equal observations do not count",
        "an old one does not open it again",
    ],
)
def test_stories(items: list[v1.Finding | Tick], expected: list[tuple[str, float]]) -> None:
    assert story(run(*items)) == expected


def test_keep_firing_adds_to_the_rules_clear_time() -> None:
    rules = dataclasses.replace(RULES, keep_firing_ns=20 * S)
    assert story(run(finding(1, clear=10), finding(5, False, clear=10), tick(99), rules=rules)) == [("firing", 1), ("recovered", 35)]


def test_an_episode_is_named_by_when_the_finding_began_and_a_second_one_differently() -> None:
    effects = run(finding(10, since=4), finding(20, False), finding(30, since=4))
    first, _, second = [e.state.alert for e in effects if isinstance(e, Transition)]
    assert first.started_at_ns == at(4)
    assert first.episode == f"{name()}-{at(4)}"
    assert second.started_at_ns == at(30)


def test_a_start_long_before_the_first_observation_is_not_believed() -> None:
    (effect,) = run(finding(5000, since=1))
    assert isinstance(effect, Transition)
    assert effect.state.alert.started_at_ns == at(5000)


def test_the_hold_counts_from_the_start_that_the_finding_names() -> None:
    assert story(run(finding(70, since=1, hold=60))) == [("firing", 70)]
    assert story(run(finding(30, since=1, hold=60), tick(62))) == [("firing", 61)]


def test_the_resolved_alert_has_the_value_at_the_resolve_and_says_what_was_wrong() -> None:
    _, resolved = [e.state.alert for e in run(finding(1, value=95), finding(2, False, value=60)) if isinstance(e, Transition)]
    assert (resolved.value, resolved.limit, resolved.summary) == (60, 90, "too hot")
    assert (resolved.fired_at_ns, resolved.resolved_at_ns) == (at(1), at(2))


def test_the_owner_stays_known_while_its_service_is_being_restarted() -> None:
    owned = finding(1)
    owned.owner.CopyFrom(v1.Workload(namespace="prod", workload="chat"))
    _, resolved = [e.state.alert for e in run(owned, finding(2), finding(3, False)) if isinstance(e, Transition)]
    assert resolved.owner.workload == "chat"


def test_shadow_stays_shadow_and_unspecified_notifies() -> None:
    shadow, plain = (run(finding(1, mode=mode))[0] for mode in (v1.AlertMode.ALERT_MODE_SHADOW, v1.AlertMode.ALERT_MODE_UNSPECIFIED))
    assert isinstance(shadow, Transition)
    assert isinstance(plain, Transition)
    assert shadow.state.alert.mode == v1.AlertMode.ALERT_MODE_SHADOW
    assert plain.state.alert.mode == v1.AlertMode.ALERT_MODE_NOTIFY


def test_what_people_did_is_kept_through_findings_and_the_resolve() -> None:
    (fired,) = run(finding(1))
    assert isinstance(fired, Transition)
    fired.state.alert.acknowledged_by = "ann"
    fired.state.alert.acknowledged_at_ns = at(2)
    fired.state.alert.link.append("a ticket")
    state = empty(RULES)
    adopt(state, fired.state)
    _, effects = step(state, [Observed(finding(10, value=99), 7), Observed(finding(20, False), 8)])
    resolved = effects[-1]
    assert isinstance(resolved, Transition)
    assert (resolved.state.alert.acknowledged_by, list(resolved.state.alert.link)) == ("ann", ["a ticket"])


def test_state_is_written_on_change_and_else_every_fifteen_seconds() -> None:
    effects = run(finding(1, hold=600), finding(5, hold=600), finding(16, hold=600), finding(20, hold=600), finding(31, hold=600))
    assert [e.state.last_finding.observed_at_ns for e in effects if isinstance(e, Save)] == [at(1), at(16), at(31)]
    cleared = run(finding(1, clear=30), finding(5, False), finding(6))
    assert [type(e) for e in cleared] == [Transition, Save, Save]


def test_a_change_of_the_rule_is_written_at_once() -> None:
    effects = run(finding(1, clear=30), finding(2, clear=30), finding(3, clear=60))
    assert [e.state.clear_ns for e in effects if isinstance(e, Save)] == [60 * S]


def test_restored_episodes_are_not_lost_for_the_time_nobody_listened() -> None:
    (fired,) = run(finding(1))
    assert isinstance(fired, Transition)
    state = empty(RULES)
    adopt(state, fired.state)
    assert step(state, [tick(1000), tick(1049)])[1] == []
    assert story(step(state, [tick(1050)])[1]) == [("signal_lost", 1050)]


def test_a_restored_pending_does_not_fire_for_time_that_nobody_vouched_for() -> None:
    (saved,) = run(finding(1, hold=60))
    assert isinstance(saved, Save)
    state = empty(RULES)
    adopt(state, saved.state)
    assert step(state, [tick(1000)])[1] == []
    assert story(step(state, [Observed(finding(1001, hold=60), 9)])[1]) == [("firing", 1001)]


def test_closed_alerts_are_remembered_up_to_the_bound() -> None:
    rules = dataclasses.replace(RULES, remembered=2)
    state = empty(rules)
    entities = ["device/a", "device/b", "device/c"]
    step(state, [Observed(f, 0) for e in entities for f in (finding(1, entity=e), finding(2, False, entity=e))])
    assert list(state.closed) == [name("device/b"), name("device/c")]


seconds = st.integers(0, 120)
findings = st.builds(
    lambda t, a, h, c, e: Observed(finding(t, a, hold=h, clear=c, entity=e), 0),
    seconds,
    st.booleans(),
    st.sampled_from([0, 10]),
    st.sampled_from([0, 10]),
    st.sampled_from(["device/a", "device/b"]),
)
items = st.lists(findings | st.builds(lambda t: tick(t), seconds), max_size=25)


@given(items, st.data())
def test_two_steps_are_one(sequence: list[Item], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(sequence)))
    _, once = step(empty(RULES), sequence)
    parts = empty(RULES)
    assert step(parts, sequence[:cut])[1] + step(parts, sequence[cut:])[1] == once


@given(items, st.data())
def test_a_replay_of_any_suffix_brings_no_second_transition(sequence: list[Item], data: st.DataObject) -> None:
    state = empty(RULES)
    step(state, sequence)
    observed = [i for i in sequence if isinstance(i, Observed)]
    suffix = observed[data.draw(st.integers(0, len(observed))) :]
    assert [e for e in step(state, suffix)[1] if isinstance(e, Transition)] == []


@given(items)
def test_each_episode_fires_once_and_resolves_at_most_once_in_that_order(sequence: list[Item]) -> None:
    seen: dict[str, list[int]] = {}
    for effect in step(empty(RULES), sequence)[1]:
        if isinstance(effect, Transition):
            seen.setdefault(effect.state.alert.episode, []).append(effect.state.alert.status)
    both = [v1.AlertStatus.ALERT_STATUS_FIRING, v1.AlertStatus.ALERT_STATUS_RESOLVED]
    assert all(statuses in (both, both[:1]) for statuses in seen.values())
