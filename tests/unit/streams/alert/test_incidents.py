"""One fault is one incident: what joins, what does not, and that a restart puts every alert where it was."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import topics
from schemas.flow import Out, Partition, Record, Tick
from schemas.telemetry import v1
from streams.operators.alert import Observed, Transition, empty, step
from streams.operators.alert.lifecycle import Item
from streams.processors.alert import AlertProcessor
from streams.rules import Rule, load_rules
from streams.rules.families import FAMILIES, family_of
from streams.settings import Alerting
from tests.fakes.log_reader import LogReader
from tests.unit.streams.alert.build import RULES, alerts, at, finding, record

CRITICAL = v1.Severity.SEVERITY_CRITICAL
SHADOW = v1.AlertMode.ALERT_MODE_SHADOW
HEAT, NEAR, XID, ECC, MEMORY = "thermal_throttle", "temperature_near_slowdown", "xid_critical", "ecc_uncorrected", "memory_nearly_full"
UNCORRECTED, USED = "ecc_uncorrected_volatile_errors", "memory_used_bytes"
MINUTE, HOUR = 60, 3600


def observed(items: list[v1.Finding | Tick]) -> list[Item]:
    return [Observed(item, n) if isinstance(item, v1.Finding) else item for n, item in enumerate(items)]


def transitions(items: list[v1.Finding | Tick]) -> list[v1.Alert]:
    return [effect.state.alert for effect in step(empty(RULES), observed(items))[1] if isinstance(effect, Transition)]


def sizes(*items: v1.Finding | Tick) -> list[int]:
    """How many alerts fired in each incident, the largest first."""
    fired = [alert for alert in transitions(list(items)) if alert.status == v1.AlertStatus.ALERT_STATUS_FIRING]
    return sorted(Counter(alert.incident for alert in fired).values(), reverse=True)


def rack(rule: str = HEAT, *, start: float = 0, step_seconds: float = 5, **more: str) -> list[v1.Finding]:
    """Eight nodes with eight cards each."""
    return [
        finding(start + step_seconds * n, rule=rule, node=f"n{n // 8}", entity=f"device/{n}", valid=1e6, **more)  # type: ignore[arg-type]  # evidence
        for n in range(64)
    ]


def test_sixty_four_cards_of_a_rack_are_one_incident_and_the_first_leads() -> None:
    told = transitions([*rack(rack="r1")])
    assert {alert.incident for alert in told} == {told[0].episode}
    assert len(told) == 64


def test_two_cards_of_different_racks_have_nothing_to_do_with_each_other() -> None:
    assert sizes(finding(0, rule=HEAT, rack="r1"), finding(0, rule=HEAT, node="n2", entity="device/d1", rack="r2")) == [1, 1]


def test_a_rack_that_nobody_named_is_a_few_incidents_not_sixty_four() -> None:
    """The first four nodes cannot be told from chance; with the fifth it is one matter."""
    assert sizes(*rack()) == [40, 8, 8, 8]


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (finding(0, rule=HEAT), finding(1, rule=NEAR, entity="device/d1"), True),
        (finding(0, rule=HEAT), finding(1, rule=XID, entity="device/d1"), False),
        (finding(0, rule=HEAT), finding(1, rule=XID), True),
        (finding(0, rule=HEAT, valid=1e6), finding(2 * HOUR, rule=XID), False),
        (finding(0, rule=HEAT, valid=1e6), finding(2 * HOUR, rule=NEAR), True),
        (finding(0, rule=ECC, metric=UNCORRECTED), finding(1, rule=ECC, metric=UNCORRECTED, entity="device/d1"), False),
        (finding(0, rule=HEAT, valid=1e6), finding(14 * MINUTE, rule=HEAT, entity="device/d1"), True),
        (finding(0, rule=HEAT, valid=1e6), finding(16 * MINUTE, rule=HEAT, entity="device/d1"), False),
        (
            finding(0, rule=MEMORY, metric=USED, owner="a"),
            finding(1, rule=MEMORY, metric=USED, owner="a", node="n2", entity="device/d1"),
            True,
        ),
        (finding(0, rule=MEMORY, metric=USED, owner="a"), finding(1, rule=MEMORY, metric=USED, owner="b", entity="device/d1"), False),
        (finding(0, rule=HEAT), finding(1, rule=XID, entity="device/part", parent="d0"), True),
        (finding(0, rule=XID, entity="device/part", parent="d0"), finding(1, rule=HEAT), True),
        (finding(0, rule=HEAT, mode=SHADOW), finding(1, rule=XID), False),
        (finding(0, rule=HEAT), finding(1, rule=HEAT, entity="device/d1", mode=SHADOW), True),
        (finding(0, rule="own_rule"), finding(1, rule="own_rule", entity="device/d1"), True),
        (finding(0, rule="own_rule", node="n1"), finding(1, rule="own_rule", node="n2", entity="device/d1"), False),
    ],
    ids=[
        "the same kind on a node",
        "another kind on another card",
        "any kind on the same card",
        "another kind on the same card hours later",
        "the same kind on the same card hours later",
        "worn memory of two cards is two repairs",
        "within a quarter of an hour",
        "after a quarter of an hour",
        "one workload on two nodes",
        "two workloads on one node",
        "a partition and its board",
        "a board and its partition",
        "a shadow leads nobody",
        "a shadow joins",
        "a rule of the user's own, on a node",
        "a rule of the user's own, on two nodes",
    ],
)
def test_what_belongs_together(first: v1.Finding, second: v1.Finding, together: bool) -> None:
    assert sizes(first, second) == ([2] if together else [1, 1])


def test_an_incident_goes_on_for_a_while_after_its_last_alert_and_then_is_over() -> None:
    soon, later = at(299), at(310)
    for again, expected in ((soon, [2]), (later, [1, 1])):
        second = finding(0, entity="device/d1")
        second.observed_at_ns, second.valid_until_ns = again, again + 10**9
        assert sizes(finding(0), finding(5, False), second) == expected


def test_an_alert_that_fires_again_soon_keeps_its_incident_under_a_new_episode() -> None:
    first, over, second = transitions([finding(0), finding(5, False), finding(60)])
    assert first.incident == over.incident == second.incident == first.episode != second.episode


def test_of_several_that_are_due_with_one_tick_the_earliest_leads() -> None:
    slow, quick = finding(0, hold=60, valid=1e6), finding(1, hold=5, entity="device/d1", valid=1e6)
    told = transitions([slow, quick, Tick(at(100))])
    assert [alert.entity for alert in told] == ["device/d1", "device/d0"]
    assert {alert.incident for alert in told} == {told[0].episode}


def test_where_a_card_is_stays_known_when_the_inventory_does_not() -> None:
    state = empty(RULES)
    step(state, observed([finding(0, rule=HEAT, hold=10, rack="r1"), finding(5, rule=HEAT, hold=10)]))
    (effect,) = step(state, [Tick(at(10))])[1]
    assert isinstance(effect, Transition)
    assert effect.state.alert.evidence["rack"] == "r1"


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.name)
def test_every_shipped_rule_is_of_a_known_family(rule: Rule) -> None:
    """So that a new rule is thought about: name it in families.py, or let its metric tell."""
    metrics = [*getattr(rule.when, "metrics", ()), *getattr(rule.when, "counters", ()), getattr(rule.when, "metric", "")]
    assert {family_of(rule.name, metric) for metric in metrics if metric or len(metrics) == 1} <= set(FAMILIES)


OWNED = frozenset({Partition(topics.FINDINGS, 0)})


def test_a_restart_in_between_changes_no_incident() -> None:
    """The leader is resolved already when the role dies: it is known from the alerts themselves."""
    everything = [finding(0, rule=HEAT, rack="r1"), finding(5, False, rule=HEAT, rack="r1"), *rack(start=10, rack="r1")]
    whole = AlertProcessor.of(Alerting())
    wanted = [alert.incident for alert in alerts(whole.process([record(f, n) for n, f in enumerate(everything)]))]
    assert len(set(wanted)) == 1
    assert whole.open_incidents == 1
    for cut in range(1, len(everything), 7):
        logs: dict[tuple[str, int], list[Record]] = {(topics.ALERT_STATE, 0): [], (topics.ALERTS, 0): []}
        lived = []
        for part in (everything[:cut], everything):  # the commit was lost: all of it comes again
            role = AlertProcessor.of(Alerting())
            role.restore(LogReader(logs), OWNED)
            for out in role.process([record(f, n) for n, f in enumerate(part)]):
                if isinstance(out, Out):
                    log = logs[out.topic, 0]
                    log.append(Record(out.topic, 0, len(log), out.key, out.value, out.headers, at(400)))
                    lived += alerts([out])
        assert [alert.incident for alert in lived] == wanted, f"restarted after {cut}"


def test_what_is_over_for_hours_takes_no_room() -> None:
    state = empty(RULES)
    step(
        state,
        observed([*rack(rack="r1"), *(finding(400 + n, False, rule=HEAT, node=f"n{n // 8}", entity=f"device/{n}") for n in range(64))]),
    )
    assert state.incidents.open == 0
    step(state, [Tick(at(3 * HOUR))])
    assert state.incidents.places == {}


some = st.builds(
    lambda t, a, h, e, r, n, k: finding(t, a, hold=h, entity=e, rule=r, node=n, rack=k),
    st.integers(0, 2000),
    st.booleans(),
    st.sampled_from([0, 10]),
    st.sampled_from(["device/a", "device/b", "device/c"]),
    st.sampled_from([HEAT, XID, MEMORY]),
    st.sampled_from(["n1", "n2"]),
    st.sampled_from(["r1", "r2"]),
)


@given(st.lists(some | st.builds(lambda t: Tick(at(t)), st.integers(0, 2000)), max_size=25), st.data())
def test_two_steps_are_one_and_an_incident_is_its_leaders_episode(items: list[v1.Finding | Tick], data: st.DataObject) -> None:
    given_ = observed(items)
    cut = data.draw(st.integers(0, len(given_)))
    once = step(empty(RULES), given_)[1]
    parts = empty(RULES)
    assert step(parts, given_[:cut])[1] + step(parts, given_[cut:])[1] == once
    fired: set[str] = set()
    for effect in once:
        if isinstance(effect, Transition):
            alert = effect.state.alert
            fired.add(alert.episode)
            assert alert.incident in fired
    assert all(presence.open >= 0 for here in parts.incidents.places.values() for presence in here.values())
