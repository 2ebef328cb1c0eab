"""Settings of the simulated fleet: its size, its seed, when its scenario began, and what shall go wrong in it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from collectors.simulated.faults import parse_fault
from schemas.section import Section

GIB = 1024**3


class Chip(Section):
    """What the simulated card is. The default follows a capture of a real H100 80GB HBM3 (driver 590.48.01): idle at 70 W and 345 MHz,
    at most 1980/2619 MHz and 700 W; core limits 87 °C (software), 89 °C (slowdown) and 95 °C (shutdown), from its T.Limit margins."""

    name: str = "Simulated H100 80GB"
    """Model name as it is shown and as peers are grouped."""
    memory_bytes: int = Field(default=80 * GIB, ge=GIB)
    """Device memory in bytes."""
    reserved_bytes: int = Field(default=479 * 1024**2, ge=0)
    """Memory that driver and firmware keep, in bytes."""
    power_limit_watts: float = Field(default=700.0, gt=200)
    """Board power limit in W."""
    idle_watts: float = Field(default=70.0, gt=0)
    """Power with no process on the card, in W."""
    sm_clock_max_hertz: float = Field(default=1.98e9, gt=0)
    """Highest core clock in Hz."""
    sm_clock_idle_hertz: float = Field(default=345e6, gt=0)
    """Core clock with no process on the card, in Hz."""
    memory_clock_hertz: float = Field(default=2.619e9, gt=0)
    """Memory clock in Hz."""
    software_thermal_celsius: float = Field(default=87.0, gt=0)
    """Core temperature at which the driver begins to lower clocks."""
    slowdown_celsius: float = Field(default=89.0, gt=0)
    """Core temperature at which the hardware halves the clocks."""
    shutdown_celsius: float = Field(default=95.0, gt=0)
    """Core temperature at which a real card turns itself off (reported only: the simulated one stays one degree below)."""
    links: int = Field(default=18, ge=0, le=64)
    """Interconnect links."""


class Simulated(Section):
    """`collectors.plugins.simulated.settings` in xpulse.yaml."""

    clusters: tuple[str, ...] = ()
    """Names of the clusters to simulate; empty means one, the agent's own. Node names repeat in each cluster."""
    nodes: int = Field(default=2, ge=1, le=10_000)
    """Nodes in each cluster."""
    devices_per_node: int = Field(default=8, ge=1, le=16)
    """Cards on each node."""
    node_prefix: str = Field(default="sim-node-", min_length=1)
    """Nodes are named by this and a number from 1."""
    seed: int = Field(default=1, ge=0)
    """Same seed, same fleet: services, loads, serials, restarts and which card a fault without scope falls on."""
    started_at_ns: int = Field(default=0, ge=0)
    """When the scenario began, ns UTC; 0 = when the plugin is created. `xpulse up` sets it, so that a restarted agent goes on."""
    faults: tuple[str, ...] = ()
    """Faults to inject, each `name@start+duration[:scope]`, for example `memory_leak@20s+60s` or `cooling_loss@1m+2m:rack=r1`."""
    nodes_per_rack: int = Field(default=2, ge=1)
    """Racks are named r1, r2, ... within a cluster."""
    racks_per_pdu: int = Field(default=1, ge=1)
    """Power distribution units are named pdu1, pdu2, ... within a cluster."""
    diurnal_period_seconds: float = Field(default=86_400.0, ge=60)
    """Length of the simulated day that request arrivals follow."""
    trough_ratio: float | None = Field(default=None, ge=0, le=1)
    """Load of every service in the middle of its night, as a share of its load by day; empty leaves it to each (0.04, 0.15 or 0.3). At 0
    the cards idle at night."""
    deploy_memory_ratio: float = Field(default=0.0, ge=0, le=0.9)
    """By how much of a service's memory the versions that are deployed differ at most: a step with a deploy."""
    warm: bool = True
    """Services are loaded when the scenario begins; false has them load (2 GiB to full in 40 s) in its first minute."""
    chip: Chip = Chip()
    """The card model."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for text in self.faults:
            parse_fault(text)
        if len(set(self.clusters)) != len(self.clusters):
            raise ValueError(f"clusters: a name occurs twice in {', '.join(self.clusters)}")
        if any(not name or "/" in name for name in self.clusters):
            raise ValueError("clusters: a name is empty or contains '/'")
        chip = self.chip
        if not chip.software_thermal_celsius < chip.slowdown_celsius < chip.shutdown_celsius:
            raise ValueError("chip: software_thermal_celsius < slowdown_celsius < shutdown_celsius must hold")
        return self
