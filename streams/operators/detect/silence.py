"""Detects nodes that say nothing: only the passing of time (a Tick) can show it, whatever sources the node has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.flow import Tick
from schemas.identity import node_entity
from streams.operators.detect.findings import About, finding
from streams.operators.detect.levels import LevelKey, Levels
from streams.operators.detect.wording import duration
from streams.rules.condition import Silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.telemetry import v1
    from streams.operators.detect.samples import Times
    from streams.rules.model import Rule


EXCUSED_NS: Final = 180 * 1_000_000_000
"""A maintenance that nobody repeats is over after three of an agent's reminders: a node that died in it is not excused for ever."""


class Heard(NamedTuple):
    """A batch of samples of the node reached the bus at `at_ns` (append time)."""

    cluster: str
    node: str
    at_ns: int
    simulated: bool


class Expected(NamedTuple):
    """The inventory knows the node: from the first Tick on it must speak."""

    cluster: str
    node: str


class Excused(NamedTuple):
    """Maintenance of one source of the node began, lasts (agents repeat it each minute) or ended, said at `at_ns` (append time):
    meanwhile its silence is no news."""

    cluster: str
    node: str
    source: str
    on: bool
    at_ns: int


@dataclass(slots=True)
class Last:
    """When the node was last heard; None: expected, and no time has passed yet."""

    at_ns: int | None
    simulated: bool = False
    excused: dict[str, int] = field(default_factory=dict)
    """By source: until when its maintenance is believed without being said again."""


@dataclass(slots=True)
class Silence:
    """State of the operator: `rules` with the seconds each allows."""

    rules: tuple[tuple[Rule, int], ...]
    levels: Levels
    nodes: dict[tuple[str, str], Last] = field(default_factory=dict)


def start(rules: Sequence[Rule], after_seconds: float, times: Times) -> Silence:
    """A fresh state; `after_seconds` is for rules that do not say their own."""
    chosen = tuple((r, round((r.when.after_seconds or after_seconds) * 1e9)) for r in rules if isinstance(r.when, Silent))
    return Silence(chosen, Levels(times))


def step(state: Silence, items: Sequence[Heard | Expected | Excused | Tick]) -> tuple[Silence, list[v1.Finding]]:
    """Findings about nodes that fell silent, still are, or speak again."""
    found: list[v1.Finding] = []
    for item in items:
        match item:
            case Heard():
                found += _heard(state, item)
            case Expected(cluster, node):
                state.nodes.setdefault((cluster, node), Last(None))
            case Excused():
                last = state.nodes.setdefault((item.cluster, item.node), Last(None))
                if item.on:
                    last.excused[item.source] = item.at_ns + EXCUSED_NS
                else:
                    last.excused.pop(item.source, None)
            case Tick(at_ns):
                found += _passed(state, at_ns)
    return state, found


def _heard(state: Silence, item: Heard) -> list[v1.Finding]:
    last = state.nodes.get((item.cluster, item.node))
    if last is None:
        last = state.nodes[item.cluster, item.node] = Last(item.at_ns)
    last.at_ns = max(item.at_ns, last.at_ns or 0)
    last.simulated = item.simulated
    if not state.levels.active:
        return []
    entity = node_entity(item.cluster, item.node)
    return [f for rule, _ in state.rules for f in state.levels.cleared(LevelKey(rule.name, item.cluster, entity), item.at_ns)]


def _passed(state: Silence, at_ns: int) -> list[v1.Finding]:
    found: list[v1.Finding] = []
    if not state.rules:
        return found
    shortest = min(after for _, after in state.rules)
    for (cluster, node), last in state.nodes.items():
        if last.at_ns is None:
            last.at_ns = at_ns
        if at_ns - last.at_ns <= shortest or any(until_ns > at_ns for until_ns in last.excused.values()):
            continue
        about = About(node_entity(cluster, node), cluster, node, last.simulated)
        for rule, after in state.rules:
            silent_ns = at_ns - last.at_ns
            if silent_ns <= after:
                continue
            made = finding(
                rule,
                about,
                active=True,
                at_ns=at_ns,
                since_ns=last.at_ns,
                valid_until_ns=at_ns + state.levels.times.valid_ns,
                value=silent_ns / 1e9,
                limit=after / 1e9,
                unit="s",
                words={"value": duration(silent_ns / 1e9)},
            )
            found += state.levels.raised(made)
    return found
