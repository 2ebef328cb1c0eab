"""Detects what device samples show: thresholds, counters and anomalies, vectorised over all devices of a batch of messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from schemas.catalogue import BY_NAME, state_name, throttle_names
from schemas.identity import device_entity
from streams.operators.detect import thresholds
from streams.operators.detect.columns import Columns, Reader, Taken, rounds
from streams.operators.detect.findings import About, finding, unit_of
from streams.operators.detect.fleet import Fleet
from streams.operators.detect.plan import Plan, compile_rules
from streams.operators.detect.table import Table
from streams.operators.detect.wording import quantity
from streams.rules.condition import Anomalous, BitsSet, Equals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from schemas.telemetry import v1
    from streams.operators.detect.ewma import Ewma
    from streams.operators.detect.fleet import Device
    from streams.operators.detect.thresholds import Cells
    from streams.rules.model import Rule


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
    ewma: Ewma
    times: Times
    table: Table = field(default_factory=Table)
    about: Callable[[Device], About] = _nothing_known
    owner: Callable[[Device], v1.Workload | None] = lambda _: None
    counts: Counter[str] = field(default_factory=Counter)
    fleet: Fleet = field(init=False)
    reader: Reader = field(init=False)
    fresh: NDArray[np.intp] = field(init=False)
    """Columns whose values are always read anew. A full sample repeats the slow ones last read, even of a device that no longer answers."""

    def __post_init__(self) -> None:
        thresholds.define(self.table, self.plan)
        self.table.define("seen_ns", np.int64, 0)
        self.fleet = Fleet(self.table)
        self.reader = Reader(self.plan.metrics)
        fast = [i for i, name in enumerate(self.plan.metrics) if BY_NAME[name].cadence == "fast"]
        self.fresh = np.array(fast or range(len(self.plan.metrics)), np.intp)


def start(rules: Sequence[Rule], ewma: Ewma, times: Times) -> Samples:
    """A fresh state for the device rules among `rules`."""
    return Samples(compile_rules([r for r in rules if r.entity == "device"]), ewma, times)


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
    split = rounds(columns.rows)
    for where in split:
        given = _round(columns, slice(None) if len(split) == 1 else where)
        cells, faults = thresholds.evaluate(state.table, state.plan, given, state.ewma, state.times.repeat_ns)
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


def _round(columns: Columns, where: slice | NDArray[np.intp]) -> thresholds.Round:
    absent = None if columns.absent is None else columns.absent[where]
    return thresholds.Round(columns.rows[where], columns.at_ns[where], columns.epoch[where], columns.values[where], absent)


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
        device, rule = columns.devices[place], state.plan.rules[r]
        column = int(cells.metric[k])
        metric = state.plan.metrics[column]
        value = float(cells.value[k])
        limit: float | None = float(cells.limit[k])
        held = float(state.table["held"][device.row, column])
        unit, ratio = unit_of(metric)
        words: dict[str, str] = {}
        match rule.when:
            case BitsSet():
                words["value"] = ", ".join(throttle_names(int(value))) or "none"
                limit = None
            case Equals(value=wanted):
                value, limit = held, wanted
            case Anomalous():
                words["probability"] = f"{value:.2f}"
                words["value"] = quantity(held, unit, ratio=ratio)
                limit = rule.when.score
            case _ if metric in BY_NAME and BY_NAME[metric].states:
                words["value"] = state_name(BY_NAME[metric], value)
                limit = None
            case _:
                pass
        evidence = dict(words)
        if not isinstance(rule.when, BitsSet | Equals) and (past := thresholds.recent(state.table, device.row, column)):
            evidence["recent"] = " ".join(quantity(x, unit, ratio=ratio) for x in past)
        at_ns = int(columns.at_ns[place])
        finding_ = finding(
            rule,
            state.about(device),
            active=bool(cells.active[k]),
            at_ns=at_ns,
            since_ns=int(cells.since_ns[k]),
            valid_until_ns=at_ns + state.times.valid_ns,
            value=value,
            limit=limit,
            metric=metric,
            words=words,
            evidence=evidence,
        )
        if (owner := state.owner(device)) is not None:
            finding_.owner.CopyFrom(owner)
        made.append((place, r, finding_))
    return made
