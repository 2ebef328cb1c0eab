"""The plan of a day: every kind of fault happens, on a card that can show it, and what it touches is known."""

from __future__ import annotations

import pytest

from bench.fleet import QUICK
from bench.fleet_plan import KINDS, Shape, Truth, broken, clean
from collectors.simulated.faults import FAULT_NAMES
from schemas.identity import device_entity


def test_every_fault_of_the_simulator_is_in_the_plan() -> None:
    assert {kind.name for kind in KINDS} == set(FAULT_NAMES)


@pytest.mark.parametrize("seed", [1, 2, 11])
def test_each_kind_happens_once_a_day_within_the_day(seed: int) -> None:
    shape = Shape()
    fleet, truths = broken(seed, shape)
    assert len(truths) == len(KINDS) == len(fleet.faults)
    assert {t.kind for t in truths} == {k.name for k in KINDS} | {"source_hang"}
    assert min(t.start_seconds for t in truths) >= 2 * 3600
    assert [t.kind for t in truths if t.end_seconds > shape.seconds and t.kind != "slow_card"] == []


@pytest.mark.parametrize("seed", [1, 2, 11])
def test_no_two_faults_act_on_a_card_at_once_but_beside_a_slow_one(seed: int) -> None:
    _, truths = broken(seed, Shape())
    for a in truths:
        for b in truths:
            if a is not b and "slow_card" not in (a.kind, b.kind) and a.start_seconds <= b.start_seconds:
                assert b.start_seconds >= a.end_seconds or not a.entities & b.entities


def test_the_plan_is_a_function_of_the_seed() -> None:
    assert broken(5, QUICK)[1] == broken(5, QUICK)[1]
    assert broken(5, QUICK)[1] != broken(6, QUICK)[1]


def test_a_clean_day_is_the_same_fleet_without_faults() -> None:
    fleet, _ = broken(5, QUICK)
    assert clean(5, QUICK).faults == ()
    assert [s.cards for s in clean(5, QUICK).services] == [s.cards for s in fleet.services]
    assert {n.cluster for n in clean(5, QUICK).layout.nodes} != {n.cluster for n in fleet.layout.nodes}


@pytest.mark.parametrize("seed", [1, 2, 11])
def test_what_shows_under_load_falls_on_a_loaded_card(seed: int) -> None:
    fleet, truths = broken(seed, Shape())
    by_entity = {device_entity(d.uid): d.number for d in fleet.layout.devices}
    for kind in KINDS:
        for truth in truths:
            if truth.kind == kind.name and kind.least_load:
                (card,) = (by_entity[e] for e in truth.entities if e in by_entity)
                assert fleet.expected_load(truth.start_seconds)[card] >= kind.least_load


def test_a_rack_fault_touches_its_rack_and_the_source_everything() -> None:
    fleet, truths = broken(1, Shape())
    cards = {t.kind: sum(e.startswith("device/") for e in t.entities) for t in truths}
    assert cards["cooling_loss"] == 16
    assert cards["power_brake"] == 8
    assert cards["source_hang"] == 64
    assert cards["thermal"] == 1
    nodes = {e for t in truths if t.kind == "thermal" for e in t.entities if e.startswith("node/")}
    assert len(nodes) == 1
    assert nodes.pop().startswith("node/broken-1/")
    shared = [s for s in fleet.services if len(s.cards) > 1]
    (joined,) = (t for t in truths if t.kind == "nvlink_degradation")
    assert shared
    assert sum(e.startswith("device/") for e in joined.touched) > 1


def test_a_truth_covers_its_time_and_the_grace_after_it() -> None:
    truth = Truth("thermal", 100, 200, frozenset({"device/a"}), frozenset({"device/a", "device/b"}))
    assert [truth.covers("device/b", at, 50) for at in (99, 100, 250, 251)] == [False, True, True, False]
    assert not truth.covers("device/c", 150, 50)
