from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.simulated.fleet import View
from schemas.catalogue import BY_NAME, CATALOGUE
from tests.unit.collectors.simulated.fleets import at, make_fleet

EVERY_FAULT = (
    "thermal@40s+60s",
    "cooling_loss@100s+120s:rack=r1",
    "power_cap@20s+50s:node=sim-node-1",
    "power_brake@150s+30s",
    "memory_leak@30s+90s",
    "ecc_burst@50s+100s",
    "nvlink_degradation@60s+100s",
    "device_lost@250s+60s",
    "driver_hang@10s+20s",
    "slow_card@70s+200s",
    "ghost@80s+90s",
    "recovery_pending@90s+60s",
    "ecc_growth@30s+300s",
    "thermal_drift@20s+330s",
    "pcie_replays@60s+120s",
)


def assert_equal(one: View, other: View) -> None:
    assert one.step == other.step
    for name in one.columns:
        assert np.array_equal(one.columns[name], other.columns[name]), name


@settings(max_examples=12, deadline=None)
@given(st.lists(st.floats(0.0, 700.0), min_size=1, max_size=12), st.integers(0, 50))
def test_one_jump_equals_many_small_advances(stops: list[float], seed: int) -> None:
    jump, walk = (make_fleet(*EVERY_FAULT, seed=seed, diurnal_period_seconds=900) for _ in range(2))
    for stop in sorted(stops):
        walk.advance(at(stop))
    jump.advance(at(max(stops)))
    assert_equal(jump.view(), walk.view())
    assert np.array_equal(jump.state.windows[-1].served, walk.state.windows[-1].served)


@pytest.mark.parametrize(
    "faults",
    [
        (),
        ("power_cap@400s+100s:node=sim-node-1", "thermal@1000s+60s"),
        ("slow_card@310s+90s", "ghost@410s+60s", "thermal_drift@1290s+100s"),
    ],
    ids=["clean", "faults", "slow"],
)
def test_the_short_way_through_calm_stretches_gives_the_same_bits(faults: tuple[str, ...]) -> None:
    short, long = make_fleet(*faults, seed=9), make_fleet(*faults, seed=9)
    long.fast = False
    for second in (7, 290, 400, 401, 455, 1300, 1500):
        short.advance(at(second))
        long.advance(at(second))
        assert_equal(short.view(), long.view())
        for one, other in zip(short.state.windows, long.state.windows, strict=True):
            for field in ("served", "waited", "backlog", "utilization", "speed"):
                assert np.array_equal(getattr(one, field), getattr(other, field)), field


def test_time_never_goes_back_and_a_part_of_a_second_is_not_a_step() -> None:
    fleet = make_fleet()
    assert fleet.advance(at(10.999)) == 10
    assert fleet.advance(at(3)) == 10
    assert fleet.advance(at(-5)) == 10


def test_an_hour_of_sixteen_cards_is_fast() -> None:
    fleet = make_fleet()
    began = time.process_time()
    fleet.advance(at(3600))
    assert time.process_time() - began < 1.0


def test_the_seed_decides_everything() -> None:
    one, same, other = (make_fleet(seed=seed) for seed in (3, 3, 4))
    for fleet in (one, same, other):
        fleet.advance(at(100))
    assert_equal(one.view(), same.view())
    assert [d.uid for d in one.layout.devices] == [d.uid for d in same.layout.devices]
    assert not {d.uid for d in one.layout.devices} & {d.uid for d in other.layout.devices}


def test_equal_node_names_in_two_clusters_have_their_own_devices() -> None:
    fleet = make_fleet(clusters=("a", "b"))
    assert len({d.uid for d in fleet.layout.devices}) == 32
    assert [n.name for n in fleet.layout.nodes] == ["sim-node-1", "sim-node-2"] * 2


def test_racks_and_power_units_follow_the_settings() -> None:
    fleet = make_fleet(nodes=6, nodes_per_rack=2, racks_per_pdu=2)
    assert [(n.rack, n.pdu) for n in fleet.layout.nodes[::2]] == [("r1", "pdu1"), ("r2", "pdu1"), ("r3", "pdu2")]


def test_every_field_of_the_catalogue_is_given_and_valid() -> None:
    fleet = make_fleet(*EVERY_FAULT)
    assert {m.name for m in CATALOGUE if m.number <= 45} | {"recovery_action"} == set(fleet.view().columns)
    for second in range(0, 400, 7):
        fleet.advance(at(second))
        for name, column in fleet.view().columns.items():
            assert all(BY_NAME[name].valid(value) for value in column.tolist()), (second, name)


def test_energy_is_the_integral_of_power_and_counters_never_fall() -> None:
    fleet = make_fleet(*EVERY_FAULT)
    counters = [m.name for m in CATALOGUE if m.kind == "counter" and m.name in fleet.view().columns]
    before = fleet.view()
    for second in range(1, 330):
        fleet.advance(at(second))
        now = fleet.view()
        gained = now.columns["energy_joules"] - before.columns["energy_joules"]  # type: ignore[operator]  # arrays of np.generic
        assert np.allclose(gained, now.columns["power_watts"], rtol=1e-6)
        for name in counters:
            assert np.all(now.columns[name] >= before.columns[name]), name  # type: ignore[operator]  # as above
        before = now


def test_temperature_follows_power_with_a_lag() -> None:
    fleet = make_fleet(seed=2)
    power, heat = [], []
    for second in range(0, 1800, 2):
        fleet.advance(at(second))
        view = fleet.view()
        power.append(view.columns["power_watts"])
        heat.append(view.columns["temperature_celsius"])
    watts, celsius = np.array(power, dtype=float), np.array(heat, dtype=float)
    busy = fleet.services[0].cards[0]
    correlation = [np.corrcoef(watts[: len(watts) - k, busy], celsius[k:, busy])[0, 1] for k in range(6)]
    assert max(correlation) > 0.8
    assert int(np.argmax(correlation)) > 0


def test_idle_cards_rest() -> None:
    fleet = make_fleet()
    fleet.advance(at(60))
    held = {card for s in fleet.services for card in s.cards}
    idle = [d.number for d in fleet.layout.devices if d.number not in held]
    columns = fleet.view().columns
    assert idle
    assert np.all(np.asarray(columns["power_watts"])[idle] == 70.0)
    assert np.all(np.asarray(columns["utilization_ratio"])[idle] == 0.0)
    assert np.all(np.asarray(columns["throttle_reasons"])[idle] == 1)


@pytest.mark.parametrize("seed", range(4))
def test_a_clean_run_is_healthy(seed: int) -> None:
    fleet = make_fleet(seed=seed, diurnal_period_seconds=4 * 3600)
    slow_steps = range(0, 5 * 3600, 60)
    for second in slow_steps:
        fleet.advance(at(second))
        columns = {name: np.asarray(column) for name, column in fleet.view().columns.items()}
        assert columns["temperature_celsius"].max() < 80.0
        assert (columns["memory_used_bytes"] / columns["memory_total_bytes"]).max() <= 0.905
    assert columns["throttled_thermal_seconds"].max() == 0
    assert columns["throttled_power_seconds"].max() == 0
    assert columns["ecc_corrected_volatile_errors"].max() == 0
    assert columns["interconnect_errors"].max() == 0
    assert columns["interconnect_links_active"].min() == 18
