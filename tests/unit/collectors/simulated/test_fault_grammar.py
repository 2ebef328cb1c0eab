from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.simulated.faults import FAULT_NAMES, Fault, parse_fault
from tests.unit.collectors.simulated.fleets import make_fleet


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("memory_leak@20s+60s", Fault("memory_leak", 20, 60)),
        ("thermal@30s+60s:card=3", Fault("thermal", 30, 60, "card", "3")),
        ("cooling_loss@1m+2m:rack=r1", Fault("cooling_loss", 60, 120, "rack", "r1")),
        ("power_cap@0s+1.5m:node=sim-node-1", Fault("power_cap", 0, 90, "node", "sim-node-1")),
        ("ecc_burst@1h+1h30m", Fault("ecc_burst", 3600, 5400)),
        ("driver_hang@5s+9s:source", Fault("driver_hang", 5, 9, "source")),
        ("driver_hang@5s+9s:scope=source", Fault("driver_hang", 5, 9, "source")),
        ("device_lost@5s+9s:card=c1/sim-node-2/0", Fault("device_lost", 5, 9, "card", "c1/sim-node-2/0")),
    ],
)
def test_a_fault_is_parsed(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@given(st.sampled_from(FAULT_NAMES), st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_fault_prints_as_what_parses_to_it(name: str, start: int, duration: int) -> None:
    fault = parse_fault(f"{name}@{start}s+{duration}s:card=1")
    assert parse_fault(str(fault)) == fault


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("memry_leak@20s+60s", ["'memry_leak'", "did you mean memory_leak?", "cooling_loss", "memory_leak@20s+60s"]),
        ("zzz@20s+60s", ["no fault 'zzz'", "faults: thermal"]),
        ("", ["no fault ''"]),
        ("thermal", ["needs @start+duration"]),
        ("thermal@20s", ["needs @start+duration"]),
        ("thermal@20+60s", ["start '20'", "20s, 1.5m"]),
        ("thermal@20s+60", ["duration '60'"]),
        ("thermal@20s+-5s", ["duration '-5s'"]),
        ("thermal@20s+0s", ["shorter than one second"]),
        ("thermal@0.5s+5s", ["whole number of seconds"]),
        ("thermal@20s+60s:crad=3", ["'crad=3'", "did you mean card?"]),
        ("thermal@20s+60s:card", ["no scope 'card'"]),
        ("thermal@20s+60s:card=", ["card= names nothing"]),
        ("thermal@20s+60s:", ["no scope ''"]),
        ("thermal@20s+60s:source", ["driver_hang only"]),
    ],
)
def test_a_bad_fault_is_named_with_its_remedy(text: str, says: list[str]) -> None:
    with pytest.raises(ValueError, match=r"examples: memory_leak@20s\+60s") as error:
        parse_fault(text)
    assert [piece for piece in says if piece not in str(error.value)] == []


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("thermal@1s+5s:card=9", (9,)),
        ("thermal@1s+5s:card=sim-node-2/1", (9,)),
        ("thermal@1s+5s:node=sim-node-2", tuple(range(8, 16))),
        ("thermal@1s+5s:rack=r2", tuple(range(16, 24))),
        ("driver_hang@1s+5s:source", ()),
    ],
)
def test_a_scope_covers_its_cards(text: str, cards: tuple[int, ...]) -> None:
    (active,) = make_fleet(text, nodes=3).faults
    assert active.cards == cards


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("thermal@1s+5s:card=99", "cards are 0 to 15, or NODE/INDEX such as sim-node-1/0"),
        ("thermal@1s+5s:node=x", "no node 'x'; there are local/sim-node-1, local/sim-node-2"),
        ("thermal@1s+5s:rack=r9", "no rack 'r9'; there are local/r1"),
    ],
)
def test_a_scope_that_does_not_exist_is_named(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make_fleet(text)


def test_equal_names_in_two_clusters_are_never_mixed() -> None:
    with pytest.raises(ValueError, match="several clusters; write one of a/sim-node-1"):
        make_fleet("thermal@1s+5s:node=sim-node-1", clusters=("a", "b"))
    (active,) = make_fleet("thermal@1s+5s:node=b/sim-node-1", clusters=("a", "b")).faults
    assert active.cards == tuple(range(16, 24))


def test_faults_without_scope_fall_on_different_busy_cards() -> None:
    fleet = make_fleet("memory_leak@1s+5s", "thermal@1s+5s", seed=5)
    held = {s.cards[0] for s in fleet.services if s.memory == "preallocate" and len(s.cards) == 1}
    chosen = [a.cards[0] for a in fleet.faults]
    assert len(set(chosen)) == 2
    assert set(chosen) <= held
