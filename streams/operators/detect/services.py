"""Compares what inference servers report with the limits of service rules; a service is as bad as its worst instance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from schemas.identity import service_entity
from streams.operators.detect import held, thresholds
from streams.operators.detect.columns import rounds
from streams.operators.detect.findings import About, Shape, finding
from streams.operators.detect.held import Round
from streams.operators.detect.plan import SERVICE_MAX_AGE_NS, Plan, compile_rules
from streams.operators.detect.scoring import Detectors
from streams.operators.detect.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.telemetry import v1
    from streams.operators.detect.samples import Times
    from streams.rules.model import Rule


_NO_DETECTOR: Final = Detectors()
"""A service's rules compare with limits only; nothing of this is used."""


@dataclass(slots=True)
class Service:
    """One service; `instances` maps (node, pod) to the end of its newest window and what that said (NaN: nothing)."""

    row: int
    instances: dict[tuple[str, str], tuple[int, list[float]]] = field(default_factory=dict)


@dataclass(slots=True)
class Services:
    """State of the operator; `counts`: `nameless` windows and `old_window`s that were skipped."""

    plan: Plan
    times: Times
    table: Table = field(default_factory=Table)
    services: dict[tuple[str, str], Service] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        thresholds.define(self.table, self.plan, _NO_DETECTOR)


def start(rules: Sequence[Rule], times: Times) -> Services:
    """A fresh state for the service rules among `rules`."""
    return Services(compile_rules([r for r in rules if r.entity == "service"]), times)


def step(state: Services, items: Sequence[v1.InferenceWindow]) -> tuple[Services, list[v1.Finding]]:
    """Findings that changed or are due again, in the order of the items."""
    if not state.plan.rules:
        return state, []
    taken: list[tuple[v1.InferenceWindow, str, int, list[float]]] = []
    for window in items:
        name = window.workload.service or window.workload.workload
        if not name:
            state.counts["nameless"] += 1
            continue
        entity = service_entity(window.cluster, window.workload.namespace, name)
        service = state.services.get((window.cluster, entity))
        if service is None:
            service = state.services[window.cluster, entity] = Service(state.table.new_row())
        instance = (window.node, window.workload.pod or window.workload.container)
        if window.ended_at_ns <= service.instances.get(instance, (0, []))[0]:
            state.counts["old_window"] += 1
            continue
        service.instances[instance] = (
            window.ended_at_ns,
            [getattr(window, m) if window.HasField(m) else np.nan for m in state.plan.metrics],
        )
        for other, (at_ns, _) in list(service.instances.items()):
            if window.ended_at_ns - at_ns > SERVICE_MAX_AGE_NS:
                del service.instances[other]
        taken.append((window, entity, service.row, _worst(service)))
    if not taken:
        return state, []
    rows = np.array([row for _, _, row, _ in taken], np.intp)
    at = np.array([w.ended_at_ns for w, _, _, _ in taken], np.int64)
    values = np.array([v for _, _, _, v in taken], np.float64)
    values[np.isinf(values)] = np.nan
    found: list[tuple[int, int, v1.Finding]] = []
    for where in rounds(rows):
        given = Round(rows[where], at[where], np.zeros(len(where), np.int64), values[where])
        cells, _ = thresholds.evaluate(state.table, state.plan, given, _NO_DETECTOR, state.times.repeat_ns)
        for k in range(len(cells.i)):
            place, r = int(where[cells.i[k]]), int(cells.rule[k])
            window, entity, row, _ = taken[place]
            column, value = int(cells.metric[k]), float(cells.value[k])
            made = finding(
                state.plan.rules[r],
                About(entity, window.cluster, window.node, window.simulated),
                active=bool(cells.active[k]),
                at_ns=window.ended_at_ns,
                since_ns=int(cells.since_ns[k]),
                valid_until_ns=window.ended_at_ns + state.times.valid_ns,
                value=value,
                limit=float(cells.limit[k]),
                metric=state.plan.metrics[column],
                evidence={"engine": window.engine, "model": window.model, "node": window.node},
                shape=Shape(held.recent(state.table, state.plan, row, column, at_ns=window.ended_at_ns, value=value), held.RECENT_STEP_NS),
            )
            made.owner.CopyFrom(window.workload)
            found.append((place, r, made))
    found.sort(key=lambda f: f[:2])
    return state, [f for _, _, f in found]


def forget_older(state: Services, than_ns: int) -> int:
    """Drop services whose newest window ended before; how many they were."""
    old = [key for key, service in state.services.items() if max((at for at, _ in service.instances.values()), default=0) < than_ns]
    state.table.forget([state.services.pop(key).row for key in old])
    return len(old)


def _worst(service: Service) -> list[float]:
    """Highest value of each metric over the instances, NaN where none said it."""
    return [
        max((v for v in column if v == v), default=float("nan"))
        for column in zip(*(values for _, values in service.instances.values()), strict=True)
    ]
