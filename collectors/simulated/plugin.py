"""The collector plugin `simulated`: a whole fleet behind the plugin contract, read at the wall clock's time."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from collectors.contract import API, NodeReading, Reading, Ready, Unavailable
from collectors.simulated.events import context_events, device_events
from collectors.simulated.fleet import SECOND_NS, Fleet
from collectors.simulated.layout import DRIVER_VERSION
from collectors.simulated.settings import Simulated
from collectors.simulated.windows import inference_windows
from collectors.simulated.workload import ENDED_KEPT_SECONDS, allocation_changes, open_lives, snapshot
from schemas.builder import SampleBuilder
from schemas.catalogue import BY_NAME, CATALOGUE
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collectors.contract import Env
    from collectors.simulated.fleet import View
    from collectors.simulated.layout import Device, Place
    from schemas.catalogue import Cadence
    from schemas.flow import ReadingEvent

SNAPSHOT_EVERY_NS: Final = 10 * SECOND_NS
INVENTORY_EVERY_NS: Final = 300 * SECOND_NS
WHERE: Final = "collectors.plugins.simulated.settings"
STRIDE_SECONDS: Final = 3600
"""Between two looks at the deadline while catching up; an hour of 16 cards takes a tenth of a second."""
REPLAY_SECONDS: Final = 60
"""A plugin that starts in the middle of a scenario tells again what happened this recently, for what its predecessor may not have
sent. Everything told has the id it had before."""


class SimulatedPlugin:
    """`read` advances the fleet to the clock's time and says what the cards, their services and the faults said since the last read.

    Samples are of the last whole second of the scenario; `taken_at_ns` is the clock's. A clock that goes back stops the scenario
    until it has caught up. `create` makes it.
    """

    def __init__(self, fleet: Fleet, *, agent_version: str, clock: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self.fleet = fleet
        self._agent_version = agent_version
        self._clock = clock
        self._sleep = sleep
        self._told: int | None = None
        self._snapshots: dict[Place, tuple[int, tuple[tuple[int, int], ...]]] = {}
        self._inventory_at_ns: int | None = None

    @property
    def api(self) -> int:
        return API

    def probe(self) -> Ready | Unavailable:
        return Ready(tuple(device.uid for device in self.fleet.layout.devices))

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        self._hang()
        now = self._clock()
        if not self._catch_up(now, deadline):
            return Reading()
        step = self.fleet.advance(now)
        view = self.fleet.view()
        fields, missing = _due(view, due), _missing(view, due)
        rejects: Counter[tuple[str, str]] = Counter()
        samples = tuple(
            NodeReading(
                taken_at_ns=now,
                samples=tuple(_sample(device, view, fields, missing, rejects) for device in devices if not view.lost[device.number]),
                node=node.ref,
                boot_id=node.boot_id,
                driver_epoch=self.fleet.started_at_ns,
                driver_version=DRIVER_VERSION,
                simulated=True,
            )
            for node, devices in zip(self.fleet.layout.nodes, self.fleet.layout.by_node, strict=True)
        )
        return Reading(samples, tuple(self._events(step, now)), rejects)

    def close(self) -> None:
        """Nothing is held."""

    def _catch_up(self, now: int, deadline: float) -> bool:
        """Go on towards `now` in long strides until it is near; False where the deadline came first (the next read goes on). Only a
        plugin that starts days into a scenario needs more than one read for it."""
        goal = self.fleet.step_at(now)
        while goal - self.fleet.state.step > STRIDE_SECONDS:
            if time.monotonic() >= deadline:
                return False
            self.fleet.advance(self.fleet.time_ns(self.fleet.state.step + STRIDE_SECONDS))
        return True

    def _hang(self) -> None:
        """`driver_hang` of the source itself: block until it ends, past every deadline, as a stuck driver call does."""
        while (left := self._hangs_for_ns(self._clock())) > 0:
            self._sleep(left / SECOND_NS)

    def _hangs_for_ns(self, now: int) -> int:
        step = self.fleet.step_at(now)
        ends = [
            a.fault.end_seconds
            for a in self.fleet.faults
            if a.fault.scope == "source" and a.fault.start_seconds <= step < a.fault.end_seconds and now >= self.fleet.started_at_ns
        ]
        return self.fleet.started_at_ns + max(ends) * SECOND_NS - now if ends else 0

    def _events(self, step: int, now: int) -> Iterator[ReadingEvent]:
        fleet, first = self.fleet, self._told is None
        after = max(step - REPLAY_SECONDS, 0) - 1 if self._told is None else self._told
        self._told = step
        if self._inventory_at_ns is None or now - self._inventory_at_ns >= INVENTORY_EVERY_NS:
            self._inventory_at_ns = now
            yield from (v1.InventoryRecord(observed_at_ns=now, node=node.info(self._agent_version)) for node in fleet.layout.nodes)
        # Billing reads the changes: a restarted agent goes as far back as the snapshots do.
        yield from allocation_changes(fleet, max(-1, step - ENDED_KEPT_SECONDS) if first else after, step, every_open=first)
        for node in fleet.layout.nodes:
            yield from self._snapshot(node, step, now)
        yield from device_events(fleet, after, step)
        yield from context_events(fleet, after, step)
        yield from inference_windows(fleet, after, step)

    def _snapshot(self, node: Place, step: int, now: int) -> Iterator[v1.AllocationSnapshot]:
        open_now = open_lives(self.fleet, node.ref, step)
        at_ns, open_then = self._snapshots.get(node, (0, None))
        if open_now != open_then or now - at_ns >= SNAPSHOT_EVERY_NS:
            self._snapshots[node] = (now, open_now)
            yield snapshot(self.fleet, node.ref, step, now)


def _due(view: View, due: frozenset[Cadence]) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in view.columns.items() if BY_NAME[name].cadence in due}


def _missing(view: View, due: frozenset[Cadence]) -> list[str]:
    return [metric.name for metric in CATALOGUE if metric.cadence in due and metric.name not in view.columns]


def _sample(
    device: Device, view: View, fields: dict[str, list[Any]], missing: list[str], rejects: Counter[tuple[str, str]]
) -> v1.DeviceSample:
    builder = SampleBuilder(device.uid, device.index).info(device.info)
    hung = bool(view.hung[device.number])
    for name, column in fields.items():
        if hung:
            builder.absent(name, "error")
        else:
            builder.set(name, column[device.number])
    for name in missing:
        builder.absent(name, "error" if hung else "not_supported")
    rejects.update(builder.rejects)
    return builder.build()


def create(
    settings: Mapping[str, Any],
    env: Env,
    *,
    clock: Callable[[], int] = time.time_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> SimulatedPlugin:
    """`collectors.plugins.simulated.settings` of xpulse.yaml as a plugin. Raises ValueError naming the key (or the fault) that is wrong.

    `clock` gives ns UTC; `sleep` takes seconds and is used by a hanging source only.
    """
    try:
        model = Simulated.model_validate(dict(settings))
    except ValidationError as error:
        problems = (f"{WHERE}.{'.'.join(map(str, p['loc']))}: {p['msg']}".replace(".: ", ": ") for p in error.errors())
        raise ValueError("; ".join(problems)) from None
    clusters = model.clusters or (env.node.cluster,)
    fleet = Fleet(model, clusters=clusters, started_at_ns=model.started_at_ns or clock())
    return SimulatedPlugin(fleet, agent_version=env.agent_version, clock=clock, sleep=sleep)
