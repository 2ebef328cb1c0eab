"""Fleets, clocks and plugins for the simulator's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collectors.contract import Env
from collectors.simulated.fleet import SECOND_NS, Fleet
from collectors.simulated.plugin import SimulatedPlugin, create
from collectors.simulated.settings import Simulated
from schemas.identity import NodeRef

if TYPE_CHECKING:
    from schemas.catalogue import Cadence

START_NS = 1_780_000_000 * SECOND_NS
FAST: frozenset[Cadence] = frozenset({"fast"})
ALL: frozenset[Cadence] = frozenset({"fast", "slow"})
DEADLINE = float("inf")


def make_fleet(*faults: str, clusters: tuple[str, ...] = ("local",), **settings: Any) -> Fleet:
    return Fleet(Simulated(faults=faults, **settings), clusters=clusters, started_at_ns=START_NS)


def at(seconds: float) -> int:
    return START_NS + int(seconds * SECOND_NS)


class Clock:
    """A wall clock that moves only when told; `sleep` moves it."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.slept = 0.0

    def __call__(self) -> int:
        return at(self.seconds)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.seconds += seconds


def make_plugin(*faults: str, clock: Clock | None = None, **settings: Any) -> tuple[SimulatedPlugin, Clock]:
    clock = clock or Clock()
    env = Env(NodeRef("local", "laptop"), boot_id="boot", agent_version="0.1.0", interval_ns=SECOND_NS)
    merged = {"started_at_ns": START_NS, "faults": list(faults), "seed": 7, **settings}
    return create(merged, env, clock=clock, sleep=clock.sleep), clock
