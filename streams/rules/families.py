"""Which rules speak of the same kind of trouble, and how far one cause of it reaches: what may share an incident.

A rule that is not named belongs where its metric does, so that a rule of a user's own is grouped like ours; one that neither tells is
a family of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Reach = Literal["device", "node", "workload", "rack"]


@dataclass(frozen=True, slots=True)
class Family:
    """`reach` is the largest place that one cause takes in; `metrics` are beginnings of metric names."""

    name: str
    reach: Reach
    rules: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


FAMILIES: Final = (
    # Air and water are the rack's: a dead fan wall or pump heats every card of it.
    Family(
        "heat",
        "rack",
        ("thermal_throttle", "temperature_near_slowdown", "temperature_limit_predicted"),
        ("temperature_", "memory_temperature_", "throttled_thermal_", "throttled_hardware_thermal_", "fan_"),
    ),
    # A supply or a PDU feeds the rack.
    Family("power", "rack", ("power_brake",), ("power_", "energy_", "throttled_power_")),
    # A switch or a feed takes several nodes away at once; a node takes its cards along.
    Family("absence", "rack", ("node_silent", "device_lost", "device_missing")),
    # A worn memory cell is one card's own: two cards with it are two repairs.
    Family("wear", "device", (), ("ecc_", "remapped_", "retired_")),
    Family(
        "links",
        "node",
        ("nvswitch_fatal", "fabric_failed", "fabric_not_joined"),
        ("pcie_", "interconnect_", "fabric_"),
    ),
    Family("driver", "node", ("xid_critical", "xid_warning", "driver_hang", "driver_log_critical"), ("recovery_",)),
    # What a program does, it does on every card it holds, and to nobody else.
    Family("memory", "workload", (), ("memory_used_", "memory_reserved_", "bar1_used_")),
    Family("program", "workload", ("xid_application", "xid_application_repeated", "ghost_card")),
    # Cards that work together wait for the slowest of them.
    Family("pace", "workload", ("slow_card", "slow_card_of_model")),
    Family(
        "load",
        "workload",
        (),
        ("utilization_", "sm_", "tensor_", "dram_", "graphics_", "memory_busy_", "fp", "memory_clock_", "requests_", "kv_cache_"),
    ),
)

_BY_RULE: Final = {rule: family for family in FAMILIES for rule in family.rules}


def family_of(rule: str, metric: str) -> Family:
    """The family of an alert: by its rule, else by its metric, else its own, which reaches a node."""
    if (named := _BY_RULE.get(rule)) is not None:
        return named
    for family in FAMILIES:
        if metric.startswith(family.metrics):
            return family
    return Family(rule, "node")
