from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.unit.collectors.simulated.fleets import at, make_fleet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collectors.simulated.fleet import Fleet


def trace(fleet: Fleet, field: str, seconds: range) -> NDArray[Any]:
    """(len(seconds), devices) values of one field."""
    rows = []
    for second in seconds:
        fleet.advance(at(second))
        rows.append(fleet.view().columns[field])
    return np.array(rows)


def test_a_leak_crosses_the_limit_and_ends_with_the_service_restarting() -> None:
    fleet = make_fleet("memory_leak@20s+60s", seed=7)
    (card,) = fleet.faults[0].cards
    ratio = trace(fleet, "memory_used_bytes", range(100))[:, card] / fleet.settings.chip.memory_bytes
    flat = ratio[:20]
    assert flat.max() - flat.min() < 0.001
    assert 0.89 <= flat.min() <= 0.901
    crossed = int(np.argmax(ratio > 0.95))
    assert 40 <= crossed <= 52
    assert np.all(ratio[crossed:80] > 0.95)
    assert ratio[:81].max() <= 0.995
    rising = np.diff(ratio[20:75])
    assert rising.std() < 0.1 * rising.mean()
    assert np.all(ratio[82:] < 0.95)
    assert np.all(abs(ratio[84:] - flat.mean()) < 0.001)


def test_a_leak_touches_only_its_card() -> None:
    with_leak, clean = make_fleet("memory_leak@20s+60s", seed=7), make_fleet(seed=7)
    (card,) = with_leak.faults[0].cards
    others = [d.number for d in clean.layout.devices if d.number != card]
    for second in (30, 70, 79):
        memory = [trace(f, "memory_used_bytes", range(second, second + 1))[0, others] for f in (with_leak, clean)]
        assert np.array_equal(memory[0], memory[1])


def test_a_thermal_fault_drifts_above_slowdown_and_throttles() -> None:
    fleet = make_fleet("thermal@30s+120s", seed=7)
    (card,) = fleet.faults[0].cards
    heat = trace(fleet, "temperature_celsius", range(150))[:, card]
    assert heat[:30].max() < 75
    assert heat[148] > fleet.settings.chip.slowdown_celsius
    columns = fleet.view().columns
    assert columns["sm_clock_hertz"][card] < 1.1e9
    assert int(columns["throttle_reasons"][card]) & 0b1101000 == 0b1101000
    assert columns["throttled_thermal_seconds"][card] > 10
    assert trace(fleet, "temperature_celsius", range(150, 300))[-1, card] < 75


def test_losing_cooling_heats_a_whole_rack() -> None:
    fleet = make_fleet("cooling_loss@1m+5m:rack=r2", nodes=4, seed=7)
    before = trace(fleet, "temperature_celsius", range(60, 61))[0]
    after = trace(fleet, "temperature_celsius", range(355, 356))[0]
    inside = np.array([d.node.rack == "r2" for d in fleet.layout.devices])
    assert (after - before)[inside].min() > 10
    assert abs(after - before)[~inside].max() < 12
    assert (after - before)[~inside].mean() < 3


def test_a_power_cap_lowers_limit_power_and_clock() -> None:
    fleet = make_fleet("power_cap@10s+60s", seed=7)
    (card,) = fleet.faults[0].cards
    power = trace(fleet, "power_watts", range(12, 60))[:, card]
    columns = fleet.view().columns
    assert power.max() <= 350.01
    assert columns["power_limit_watts"][card] == 350.0
    assert int(columns["throttle_reasons"][card]) == 0b100
    assert columns["throttled_power_seconds"][card] > 5
    trace(fleet, "power_watts", range(70, 75))
    assert fleet.view().columns["power_limit_watts"][card] == 700.0


def test_a_power_brake_halves_the_clock() -> None:
    fleet = make_fleet("power_brake@10s+60s:node=sim-node-1", seed=7)
    clock = trace(fleet, "sm_clock_hertz", range(30, 31))[0]
    busy = [c for s in fleet.services for c in s.cards]
    assert {clock[c] for c in busy if c < 8} == {990e6}
    assert {clock[c] for c in busy if c >= 8} == {1980e6}
    assert int(fleet.view().columns["throttle_reasons"][busy[0]]) == 0b10001000


def test_an_ecc_burst_grows_and_leaves_a_remapped_row() -> None:
    fleet = make_fleet("ecc_burst@10s+100s", seed=7)
    (card,) = fleet.faults[0].cards
    corrected = trace(fleet, "ecc_corrected_volatile_errors", range(110))[:, card]
    assert corrected[10] == 0
    assert corrected[109] > 10_000
    during = fleet.view().columns
    assert during["ecc_uncorrected_volatile_errors"][card] == 1
    assert during["remapped_rows_pending"][card]
    trace(fleet, "power_watts", range(110, 112))
    after = fleet.view().columns
    assert not after["remapped_rows_pending"][card]
    assert after["remapped_rows_uncorrectable"][card] == 1


def test_a_failing_interconnect_loses_links_and_traffic() -> None:
    broken, clean = make_fleet("nvlink_degradation@10s+100s", seed=1), make_fleet(seed=1)
    (card,) = broken.faults[0].cards
    assert len(next(s.cards for s in broken.services if card in s.cards)) > 1
    sent = []
    for fleet in (broken, clean):
        bytes_sent = trace(fleet, "interconnect_tx_bytes", range(20, 100))[:, card]
        sent.append(int(bytes_sent[-1]) - int(bytes_sent[0]))
    columns = broken.view().columns
    assert 0 < sent[0] < 0.8 * sent[1]
    assert columns["interconnect_links_active"][card] < 17
    assert columns["interconnect_errors"][card] > 5000


def test_throttling_shows_in_the_service() -> None:
    capped, clean = make_fleet("power_brake@10s+300s:node=sim-node-1", seed=7), make_fleet(seed=7)
    load = [trace(f, "utilization_ratio", range(100, 101))[0, f.services[0].cards[0]] for f in (capped, clean)]
    assert load[0] > load[1]
    assert capped.state.windows[-1].speed[0] < clean.state.windows[-1].speed[0]
