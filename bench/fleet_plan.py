"""What goes wrong in one simulated day, when, and where it may be seen: a plan drawn from the seed, so that truth is known.

Every kind of fault of the simulator happens once a day, each in a slot of its own; only a slow card lasts into its neighbours'. What
shows under load only (a slow card, a power cap, links that nobody uses) is put on a loaded card: where it has no effect, nothing could
find it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from collectors.simulated.fleet import Fleet
from collectors.simulated.settings import Simulated
from schemas.identity import device_entity, node_entity, service_entity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collectors.simulated.faults import FaultName

SECOND_NS: Final = 1_000_000_000
STARTED_AT_NS: Final = 1_780_000_000 * SECOND_NS
MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: between how many minutes it lasts, what it befalls, and which load (share of capacity) its card must have."""

    name: FaultName
    shortest: int
    longest: int
    scope: str = "card"
    least_load: float = 0.0
    joined: bool = False


KINDS: Final = (
    Kind("thermal", 6, 12),
    Kind("cooling_loss", 10, 20, "rack"),
    Kind("power_cap", 20, 40, least_load=0.55),
    Kind("power_brake", 3, 8, "node"),
    Kind("memory_leak", 30, 60),
    Kind("ecc_burst", 5, 15),
    Kind("nvlink_degradation", 10, 20, joined=True),
    Kind("device_lost", 5, 15),
    Kind("driver_hang", 3, 8),
    Kind("slow_card", 150, 210, least_load=0.35),
    Kind("ghost", 20, 40, "free"),
    Kind("recovery_pending", 10, 20),
    Kind("ecc_growth", 30, 60),
    Kind("thermal_drift", 30, 60),
    Kind("pcie_replays", 10, 20),
    Kind("driver_hang", 2, 4, "source"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How much is simulated. `kinds` are what happens, in slots over (`quiet_hours`, `hours`)."""

    nodes: int = 8
    devices: int = 8
    hours: float = 24.0
    quiet_hours: float = 2.0
    kinds: tuple[Kind, ...] = KINDS

    @property
    def seconds(self) -> int:
        return round(self.hours * 3600)

    @property
    def device_days(self) -> float:
        return self.nodes * self.devices * self.hours / 24


@dataclass(frozen=True, slots=True)
class Truth:
    """A fault that acts in [start, end) seconds. `entities` may tell of it; on the others of `touched` its effects may be seen too: cards
    that work together with a slower one slow down with it."""

    kind: str
    start_seconds: int
    end_seconds: int
    entities: frozenset[str]
    touched: frozenset[str]

    def covers(self, entity: str, at_seconds: float, grace_seconds: float) -> bool:
        """Whether a finding of the entity at that time is put down to this fault."""
        return self.start_seconds <= at_seconds <= self.end_seconds + grace_seconds and entity in self.touched


def settings(seed: int, shape: Shape, faults: Sequence[str] = ()) -> Simulated:
    """The fleet of a seed. Every second one idles at night; deploys change what services hold."""
    return Simulated(
        nodes=shape.nodes,
        devices_per_node=shape.devices,
        seed=seed,
        faults=tuple(faults),
        trough_ratio=0.0 if seed % 2 else None,
        deploy_memory_ratio=0.15,
    )


def clean(seed: int, shape: Shape) -> Fleet:
    """A day on which nothing breaks, in a cluster of its own, as each day is: several are watched side by side."""
    return Fleet(settings(seed, shape), clusters=(f"clean-{seed}",), started_at_ns=STARTED_AT_NS)


def broken(seed: int, shape: Shape) -> tuple[Fleet, list[Truth]]:
    """A day on which every kind of fault happens, and what happened."""
    whole = clean(seed, shape)
    rng = np.random.default_rng([seed, 71])
    begin, end = round(shape.quiet_hours * 3600), shape.seconds
    slot = (end - begin) // len(shape.kinds)
    free = list(range(len(shape.kinds)))
    texts: list[str] = []
    chosen: list[tuple[Kind, int, int, int]] = []
    busy: set[int] = set()
    # What needs load chooses its time first.
    for kind in sorted(shape.kinds, key=lambda k: -k.least_load):
        length = int(rng.integers(kind.shortest, kind.longest + 1)) * MINUTE
        places = [(at, cards) for at in _starts(rng, free, begin, slot, length) if (cards := _cards(whole, kind, at, length, busy))]
        if not places:
            continue
        at, cards = places[0]
        free.remove((at - begin) // slot)
        card = int(rng.choice(cards))
        busy.add(card)
        texts.append(f"{kind.name}@{at}s+{length}s:{_scope(whole, kind, card)}")
        chosen.append((kind, card, at, at + length))
    fleet = Fleet(settings(seed, shape, texts), clusters=(f"broken-{seed}",), started_at_ns=STARTED_AT_NS)
    return fleet, sorted((_truth(fleet, *fault) for fault in chosen), key=lambda t: t.start_seconds)


def _starts(rng: np.random.Generator, free: Sequence[int], begin: int, slot: int, length: int) -> list[int]:
    """One start in each free slot, the slots in random order; what fits ends before its slot does."""
    return [begin + int(n) * slot + int(rng.integers(0, max(1, slot - length - 10 * MINUTE))) for n in rng.permutation(free)]


def _cards(fleet: Fleet, kind: Kind, at: int, length: int, busy: set[int]) -> list[int]:
    """Cards that the fault may fall on then. No card has two faults a day, so that nothing is seen through another fault's end."""
    load = np.minimum(fleet.expected_load(at), fleet.expected_load(at + length // 2))
    held = {card for s in fleet.services for card in s.cards}
    # A leak of a service that grows and restarts by itself, or of cards that share its work, has no simple truth.
    steady = {card for s in fleet.services if s.memory == "preallocate" for card in s.cards}
    together = {card for s in fleet.services if len(s.cards) > 1 for card in s.cards}
    able = set(range(len(fleet.layout.devices))) - held if kind.scope == "free" else steady if kind.scope == "card" else held
    if kind.joined:
        able &= together
    return sorted(card for card in able - busy if load[card] >= kind.least_load)


def _scope(fleet: Fleet, kind: Kind, card: int) -> str:
    device = fleet.layout.devices[card]
    match kind.scope:
        case "rack":
            return f"rack={device.node.rack}"
        case "node":
            return f"node={device.node.name}"
        case "source":
            return "source"
        case _:
            return f"card={card}"


def _truth(fleet: Fleet, kind: Kind, card: int, start: int, end: int) -> Truth:
    hit = fleet.layout.devices[card]
    match kind.scope:
        case "rack":
            cards = [d for d in fleet.layout.devices if d.node.rack == hit.node.rack]
        case "node":
            cards = [d for d in fleet.layout.devices if d.node is hit.node]
        case "source":
            cards = list(fleet.layout.devices)
        case _:
            cards = [hit]
    entities = {device_entity(d.uid) for d in cards} | {node_entity(d.node.cluster, d.node.name) for d in cards}
    numbers = {d.number for d in cards}
    touched = set(entities)
    for service in fleet.services:
        if numbers & set(service.cards):
            touched |= {device_entity(fleet.layout.devices[c].uid) for c in service.cards}
            touched.add(service_entity(service.cluster, service.namespace, service.name))
    name = "source_hang" if kind.scope == "source" else kind.name
    return Truth(name, start, end, frozenset(entities), frozenset(touched))
