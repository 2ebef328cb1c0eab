"""Detects what device samples show: thresholds, counters and anomalies, vectorised over all devices of a batch of messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from schemas.catalogue import BY_NAME
from schemas.identity import device_entity
from streams.operators.detect import peerstats, thresholds
from streams.operators.detect.channels import family
from streams.operators.detect.columns import Columns, Reader, Taken
from streams.operators.detect.described import describe
from streams.operators.detect.findings import About
from streams.operators.detect.fleet import Fleet
from streams.operators.detect.held import Round
from streams.operators.detect.peerstats import Ended
from streams.operators.detect.plan import Plan, compile_rules
from streams.operators.detect.scoring import Detectors
from streams.operators.detect.table import Table
from streams.operators.detect.visits import by_node, places
from streams.rules.condition import Anomalous, Ghost, Residual, Unlike

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from schemas.telemetry import v1
    from streams.operators.detect.fleet import Device
    from streams.operators.detect.peers import Place
    from streams.operators.detect.thresholds import Cells
    from streams.rules.model import Rule


class Standing(NamedTuple):
    """A rule of events or forecasts that stands for a device; `metric` is that of the forecast."""

    rule: str
    metric: str = ""


@dataclass(frozen=True, slots=True)
class Times:
    """An active finding is repeated every `repeat_ns` and true for `valid_ns` without that; both in event time."""

    repeat_ns: int = 15_000_000_000
    valid_ns: int = 45_000_000_000


def _nothing_known(device: Device) -> About:
    return About(device_entity(device.uid), device.node.cluster, device.node.name, device.node.simulated)


@dataclass(slots=True)
class Samples:
    """State of the operator. `about` names a device with all that is known of it (owner, context); it is asked for findings only.

    `counts`: `duplicate` and `old_epoch` batches that were skipped, and `counter_went_back` within an epoch.
    """

    plan: Plan
    detectors: Detectors
    times: Times
    table: Table = field(default_factory=Table)
    about: Callable[[Device], About] = _nothing_known
    owner: Callable[[Device], v1.Workload | None] = lambda _: None
    standing: Callable[[Device], Sequence[Standing]] = lambda _: ()
    tells_peers: bool = False
    """Whether `stats` are made, for comparing the devices of a model across nodes."""
    stats: list[v1.PeerStats] = field(default_factory=list)
    """What was made since somebody took it from here."""
    ended: Ended | None = None
    """Devices whose point ended in the round that is taken in, while it is."""
    counts: Counter[str] = field(default_factory=Counter)
    fleet: Fleet = field(init=False)
    reader: Reader = field(init=False)
    fresh: NDArray[np.intp] = field(init=False)
    """Columns whose values are always read anew. A full sample repeats the slow ones last read, even of a device that no longer answers."""

    def __post_init__(self) -> None:
        thresholds.define(self.table, self.plan, self.detectors)
        self.table.define("seen_ns", np.int64, 0)
        self.fleet = Fleet(self.table)
        self.reader = Reader(self.plan.metrics)
        fast = [i for i, name in enumerate(self.plan.metrics) if BY_NAME[name].cadence == "fast"]
        self.fresh = np.array(fast or range(len(self.plan.metrics)), np.intp)


def start(rules: Sequence[Rule], detectors: Detectors, times: Times) -> Samples:
    """A fresh state for the device rules among `rules`."""
    tells = any(isinstance(rule.when, Unlike) and rule.when.among == "model" for rule in rules)
    return Samples(compile_rules([r for r in rules if r.entity == "device"]), detectors, times, tells_peers=tells)


def step(state: Samples, items: Sequence[Taken]) -> tuple[Samples, list[v1.Finding]]:
    """Findings that changed or are due again, in the order of the items: `read`, then `take`.

    A batch at or below the newest (epoch, sequence) of its node and source was taken in before and is skipped: a replay doubles nothing.
    """
    return take(state, read(state, items)) if items else (state, [])


def read(state: Samples, items: Sequence[Taken]) -> Columns:
    """What the batches say, in columns; devices that are new get a row. Batches that were taken in before are left out and counted."""
    return state.reader.read([item for item in items if _is_new(state, item.batch)], state.fleet)


def take(state: Samples, columns: Columns) -> tuple[Samples, list[v1.Finding]]:
    """The findings of what was read: all that `step` does once the messages are columns."""
    found: list[tuple[int, int, v1.Finding]] = []
    split = by_node(columns)
    for where in split:
        given = _round(state, columns, where, whole=len(split) == 1)

        def veto(i: NDArray[np.intp], rule: NDArray[np.intp], metric: NDArray[np.intp]) -> NDArray[np.bool_]:
            devices = [columns.devices[place] for place in where[i].tolist()]  # noqa: B023 (asked within this turn of the loop)
            names = [state.plan.metrics[m] for m in metric.tolist()]
            said = [_vetoed(state, device, r, name) for device, r, name in zip(devices, rule.tolist(), names, strict=True)]
            return np.array(said, np.bool_)

        cells, faults = thresholds.evaluate(state.table, state.plan, given, state.detectors, state.times.repeat_ns, veto)
        if state.ended is not None:
            state.stats += peerstats.tell(state.table, state.ended, state.detectors.peers)
            state.ended = None
        seen = ~np.isnan(given.values[:, state.fresh]).all(axis=1)
        state.table["seen_ns"][given.rows[seen]] = given.at_ns[seen]
        if faults:
            state.counts["counter_went_back"] += faults
        if len(cells.i):
            found += _findings(state, columns, where, cells)
    found.sort(key=lambda f: f[:2])
    return state, [f for _, _, f in found]


def forget_older(state: Samples, than_ns: int) -> int:
    """Drop devices that were last read before, as a card that was replaced; how many. One never read is the inventory's to take away."""
    seen_ns = state.table["seen_ns"]
    old = [device for device in state.fleet.devices() if 0 < seen_ns[device.row] < than_ns]
    for device in old:
        state.fleet.forget_device(device)
    return len(old)


def _round(state: Samples, columns: Columns, where: NDArray[np.intp], *, whole: bool) -> Round:
    part = slice(None) if whole else where
    absent = None if columns.absent is None else columns.absent[part]
    users = None if columns.users is None else columns.users[part]

    def asked(i: NDArray[np.intp]) -> Sequence[Place]:
        devices = [columns.devices[place] for place in where[i].tolist()]
        found = places(devices, state.owner)
        if state.tells_peers:
            state.ended = Ended(devices, found, columns.at_ns[where[i]])
        return found

    return Round(columns.rows[part], columns.at_ns[part], columns.epoch[part], columns.values[part], absent, users, asked)


def _is_new(state: Samples, batch: v1.SampleBatch) -> bool:
    node = state.fleet.node(batch.cluster, batch.node)
    newest = node.taken.get(batch.source, (0, 0))
    if (batch.agent_epoch, batch.sequence) <= newest and batch.source in node.taken:
        state.counts["duplicate" if batch.agent_epoch == newest[0] else "old_epoch"] += 1
        return False
    node.taken[batch.source] = (batch.agent_epoch, batch.sequence)
    node.newest_ns[batch.source] = batch.taken_at_ns
    node.simulated = batch.simulated
    return True


def _findings(state: Samples, columns: Columns, where: NDArray[np.intp], cells: Cells) -> list[tuple[int, int, v1.Finding]]:
    """The messages for the cells of one round, each with its place in the batch."""
    made = []
    for k in range(len(cells.i)):
        place, r = int(where[cells.i[k]]), int(cells.rule[k])
        device = columns.devices[place]
        finding = describe(
            state.table,
            state.plan,
            cells,
            k,
            row=device.row,
            at_ns=int(columns.at_ns[place]),
            valid_ns=state.times.valid_ns,
            about=state.about(device),
        )
        if state.plan.rules[r].unless:
            finding.evidence["beside"] = ", ".join(_beside(state, device, r)) or "nothing else is wrong with it"
        if (owner := state.owner(device)) is not None:
            finding.owner.CopyFrom(owner)
        made.append((place, r, finding))
    return made


def _beside(state: Samples, device: Device, r: int) -> list[str]:
    """What else stands of a device."""
    active = [state.plan.rules[o].name for o in np.flatnonzero(state.table["active"][device.row]).tolist() if o != r]
    return active + [s.rule for s in state.standing(device)]


def _vetoed(state: Samples, device: Device, r: int, metric: str) -> bool:
    """Whether what is known beside the readings speaks against raising a rule: who uses the device, and what events and forecasts say."""
    rule = state.plan.rules[r]
    if isinstance(rule.when, Ghost) and state.owner(device) is not None:
        return True
    if not rule.unless and not isinstance(rule.when, Anomalous | Residual):
        return False
    standing = state.standing(device)
    if any(s.rule in rule.unless for s in standing):
        return True
    # an event shows in every reading, a forecast in those that go with its own
    return isinstance(rule.when, Anomalous | Residual) and any(not s.metric or family(s.metric) == family(metric) for s in standing)
