from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from collectors.simulated.settings import GIB
from tests.unit.collectors.simulated.fleets import at, make_fleet


def test_most_services_preallocate_and_one_name_in_eight_grows() -> None:
    services = make_fleet(nodes=20).services
    growing = sum(s.memory == "grow" for s in services)
    assert 0.05 < growing / len(services) < 0.2
    assert {len(s.cards) for s in services} == {1, 2, 4}


@pytest.mark.parametrize("seed", range(20))
def test_one_card_of_every_fleet_is_held_by_a_preallocating_service(seed: int) -> None:
    for nodes, devices in ((1, 1), (2, 8)):
        first = make_fleet(seed=seed, nodes=nodes, devices_per_node=devices).services[0]
        assert (first.memory, len(first.cards)) == ("preallocate", 1)


def test_a_cold_start_loads_two_to_full_in_forty_seconds() -> None:
    fleet = make_fleet(seed=7, warm=False)
    card = fleet.services[0].cards[0]
    used = []
    for second in range(60):
        fleet.advance(at(second))
        used.append(int(fleet.view().columns["memory_used_bytes"][card]) / GIB)
    opened = fleet.timeline.life(0, 0).opened
    assert max(used[:opened]) < 0.1
    assert used[opened] == pytest.approx(2.0, abs=0.1)
    assert used[opened + 40] == pytest.approx(72.0, abs=0.8)
    assert np.ptp(used[opened + 40 :]) < 0.1


def test_a_growing_service_restarts_below_its_limit() -> None:
    fleet = make_fleet(seed=7)
    grower = next(s for s in fleet.services if s.memory == "grow")
    ratio = []
    for second in range(0, 12 * 3600, 120):
        fleet.advance(at(second))
        ratio.append(int(fleet.view().columns["memory_used_bytes"][grower.cards[0]]) / fleet.settings.chip.memory_bytes)
    assert max(ratio) < 0.9
    assert sum(b < a - 0.15 for a, b in pairwise(ratio)) >= 1


def test_planned_changes_come_and_keep_clear_of_each_other_and_of_faults() -> None:
    fleet = make_fleet("memory_leak@2h+6h:node=sim-node-1", nodes=4)
    closings = {
        s.number: [life.closed for life in fleet.timeline.between(s.number, 0, 48 * 3600) if life.closed is not None]
        for s in fleet.services
    }
    assert sum(map(len, closings.values())) > 20
    assert min(min(c) for c in closings.values() if c) >= 900
    leaking = set(fleet.faults[0].cards)
    for service in fleet.services:
        closed = closings[service.number]
        assert all(b - a > 120 for a, b in pairwise(closed))
        if set(service.cards) & leaking:
            assert [c for c in closed if 2 * 3600 <= c <= 8 * 3600] == [8 * 3600]


def test_lives_do_not_depend_on_how_far_anyone_has_looked() -> None:
    near, far = make_fleet(seed=3), make_fleet(seed=3)
    far.timeline.ensure(10 * 86_400)
    for service in near.services:
        lives = [[(life.opened, life.ready, life.kind) for life in f.timeline.between(service.number, 0, 86_400)] for f in (near, far)]
        assert lives[0] == lives[1]
