"""A rack whose cooling fails, through the shipped detect and alert roles: one incident, whatever the number of its alerts."""

from __future__ import annotations

from bench.fleet_run import run
from collectors.simulated.fleet import Fleet
from collectors.simulated.settings import Simulated


def test_a_rack_of_sixty_four_cards_whose_cooling_fails_is_one_incident() -> None:
    settings = Simulated(
        clusters=("c",), nodes=8, devices_per_node=8, nodes_per_rack=8, seed=7, warm=True, faults=("cooling_loss@2m+12m:rack=r1",)
    )
    (day,) = run([Fleet(settings, clusters=("c",), started_at_ns=1_780_000_000 * 10**9)], 16 * 60)
    assert len(day.fired) > 64
    assert len({alert.entity for alert in day.fired}) > 40
    assert len({alert.incident for alert in day.fired}) == 1
