"""The faults that creep or say nothing: a slow card, a ghost, errors that grow, a drift."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.simulated.growth import grown
from collectors.simulated.memory import Memory
from schemas.telemetry import v1
from tests.unit.collectors.simulated.fleets import at, make_fleet
from tests.unit.collectors.simulated.test_faults_act import trace


def test_a_slow_card_does_less_work_and_gives_no_reason() -> None:
    slow, clean = (make_fleet(*faults, seed=7) for faults in (("slow_card@20s+600s",), ()))
    (card,) = slow.faults[0].cards
    power = [trace(f, "power_watts", range(100, 400, 10))[:, card].mean() for f in (slow, clean)]
    columns, same = slow.view().columns, clean.view().columns
    assert columns["sm_clock_hertz"][card] == pytest.approx(0.8 * 1.98e9, rel=0.01)
    assert int(columns["throttle_reasons"][card]) == 0
    assert columns["throttled_power_seconds"][card] == 0
    assert power[0] < 0.92 * power[1]
    assert columns["utilization_ratio"][card] > same["utilization_ratio"][card]
    trace(slow, "power_watts", range(620, 625))
    assert slow.view().columns["sm_clock_hertz"][card] == 1.98e9


def test_a_ghost_is_busy_for_nobody() -> None:
    fleet = make_fleet("ghost@20s+60s", seed=7)
    (card,) = fleet.faults[0].cards
    assert card not in {c for s in fleet.services for c in s.cards}
    busy = trace(fleet, "utilization_ratio", range(15, 85))[:, card]
    assert busy.tolist() == [0.0] * 5 + [1.0] * 60 + [0.0] * 5
    during = make_fleet("ghost@20s+60s", seed=7)
    during.advance(at(70))
    columns = during.view().columns
    assert columns["memory_used_bytes"][card] <= 4 * 1024**2
    assert columns["sm_active_ratio"][card] == 0.0
    assert columns["power_watts"][card] == pytest.approx(118.0)
    assert columns["sm_clock_hertz"][card] == 1.98e9
    assert int(columns["throttle_reasons"][card]) == 0


def test_a_ghost_in_a_scope_haunts_the_free_cards_only() -> None:
    fleet = make_fleet("ghost@20s+60s:node=sim-node-1", seed=7)
    used = {c for s in fleet.services for c in s.cards}
    assert set(fleet.faults[0].cards) == {d.number for d in fleet.layout.devices if d.node.name == "sim-node-1"} - used


@pytest.mark.parametrize("nodes", [2, 1])
def test_a_ghost_without_a_free_card_is_refused_and_the_free_ones_are_named(nodes: int) -> None:
    fleet = make_fleet(seed=7, nodes=nodes)
    taken = fleet.services[0].cards[0]
    with pytest.raises(ValueError, match=r"ghost needs a free one: sim-node-1/"):
        make_fleet(f"ghost@20s+60s:card={taken}", seed=7, nodes=nodes)


def test_a_fleet_without_free_cards_says_so() -> None:
    with pytest.raises(ValueError, match="ghost needs a free one: there is none"):
        make_fleet("ghost@20s+60s", nodes=1, devices_per_node=1)


def test_a_pending_recovery_is_all_that_shows() -> None:
    sick, clean = (make_fleet(*faults, seed=7) for faults in (("recovery_pending@20s+60s",), ()))
    (card,) = sick.faults[0].cards
    asked = trace(sick, "recovery_action", range(15, 85))
    assert asked[:, card].tolist() == [0] * 5 + [v1.RecoveryAction.RECOVERY_ACTION_RESET_DEVICE] * 60 + [0] * 5
    assert not np.delete(asked, card, axis=1).any()
    for fleet in (sick, clean):
        fleet.advance(at(90))
    for name, column in clean.view().columns.items():
        assert np.array_equal(column, sick.view().columns[name]), name


def test_corrected_errors_and_remapped_rows_grow_faster_and_faster() -> None:
    fleet = make_fleet("ecc_growth@1m+30m", seed=7)
    (card,) = fleet.faults[0].cards
    seconds = range(60, 1861, 60)
    errors = trace(fleet, "ecc_corrected_volatile_errors", seconds)[:, card]
    assert errors[0] == 0
    assert errors[-1] == pytest.approx(1800, rel=0.15)
    assert errors[15] < 0.35 * errors[-1]
    assert np.all(np.diff(errors) >= 0)
    columns = fleet.view().columns
    assert columns["remapped_rows_correctable"][card] == 8
    assert columns["ecc_uncorrected_volatile_errors"][card] == 0
    fleet.advance(at(4000))
    assert fleet.view().columns["ecc_corrected_volatile_errors"][card] == errors[-1]


def test_a_drift_takes_its_time_and_only_just_reaches_slowdown() -> None:
    fleet = make_fleet("thermal_drift@1m+40m", seed=7)
    (card,) = fleet.faults[0].cards
    heat = trace(fleet, "temperature_celsius", range(0, 2460, 20))[:, card]
    slowdown = fleet.settings.chip.slowdown_celsius
    assert heat[:3].max() < 75
    assert 0.2 < np.mean(heat > slowdown - 5) < 0.45
    assert slowdown - 3 < heat[-2] < slowdown + 4
    fleet.advance(at(2700))
    assert fleet.view().columns["temperature_celsius"][card] < 76


def test_a_bad_link_repeats_packets() -> None:
    fleet = make_fleet("pcie_replays@1m+10m", seed=7)
    (card,) = fleet.faults[0].cards
    replays = trace(fleet, "pcie_replays", range(60, 720, 60))
    assert replays[-1, card] == pytest.approx(1200, rel=0.15)
    assert np.diff(replays[:10, card]).min() > 80
    assert not np.delete(replays, card, axis=1).any()


def test_growth_is_a_function_of_its_seed_and_moment() -> None:
    counts = [grown(s, 600, 1000, power=2, seed=(1, 2, 3)) for s in range(-5, 700)]
    assert counts[:6] == [0] * 6
    assert counts == sorted(counts)
    assert counts[-1] == grown(600, 600, 1000, power=2, seed=(1, 2, 3)) == pytest.approx(1000, rel=0.15)
    assert counts != [grown(s, 600, 1000, power=2, seed=(1, 2, 4)) for s in range(-5, 700)]


def test_at_night_the_cards_idle() -> None:
    fleet = make_fleet(seed=7, trough_ratio=0.0, diurnal_period_seconds=3600)
    load = trace(fleet, "utilization_ratio", range(0, 3600, 20))
    busy = [c for s in fleet.services for c in s.cards]
    assert load[:, busy].min(axis=0).max() < 0.02
    assert load[:, busy].max(axis=0).min() > 0.4


def test_a_deploy_changes_what_a_service_holds() -> None:
    steps = range(0, 24 * 3600, 600)
    held = []
    for ratio in (0.3, 0.0):
        fleet = make_fleet(seed=7, nodes=4, deploy_memory_ratio=ratio)
        none = np.zeros(len(fleet.layout.devices))
        memory = Memory(fleet.services, fleet.timeline, fleet.settings, len(none))
        held.append(np.array([memory.used(s, none) for s in steps]))
    held = [used / fleet.settings.chip.memory_bytes for used in held]
    steady = [c for s in fleet.services if s.memory == "preallocate" for c in s.cards]
    levels = [{round(float(v), 2) for v in held[0][:, card] if v > 0.5} for card in steady]
    assert max(len(level) for level in levels) >= 2
    assert held[0].max() <= held[1].max()
    assert np.array_equal(held[0][0], held[1][0])
