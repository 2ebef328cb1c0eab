"""Compares a device with those of its model on other nodes, by what every detect process tells of its nodes; one process does it for all.

A node shows by itself which of its cards is the odd one. What it cannot show is left for this: a node all of whose cards are slow, and a
card that has too few of its like beside it. A device is judged here only where its node does not judge it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from schemas.flow import Tick
from schemas.identity import device_entity
from streams.operators.detect import peers
from streams.operators.detect.findings import About, Judged, finding
from streams.operators.detect.levels import LevelKey, Levels
from streams.operators.detect.peerstats import TOLD
from streams.operators.detect.table import Table
from streams.rules.condition import Unlike

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from schemas.telemetry import v1
    from streams.operators.detect.peers import Peers
    from streams.operators.detect.samples import Times
    from streams.rules.model import Rule

    Floats = NDArray[np.float64]

GROUP: Final = 8
NODES: Final = 3
"""Least devices, and least nodes, that are compared: two nodes that differ do not tell which one is slow."""
FRESH_POINTS: Final = 3
"""What was told longer ago is not compared with."""
FORGET_NS: Final = 3600 * 1_000_000_000

_FEATURES: Final = len(peers.NAMES)
_CLOCK: Final = peers.NAMES.index("sm_clock_hertz")
_ACTIVITY: Final = [i for i, name in enumerate(peers.NAMES) if name.endswith("_active_ratio")]


class Told(NamedTuple):
    """What a node told last; `means` (devices, TOLD)."""

    stats: v1.PeerStats
    means: Floats
    rows: NDArray[np.intp]


def _plain(stats: v1.PeerStats, device: v1.PeerDevice) -> About:
    words = {"uid": device.uid, "model": stats.model}
    if device.HasField("index"):
        words["index"] = str(device.index)
    return About(device_entity(device.uid), stats.cluster, stats.node, stats.simulated, words=words)


@dataclass(slots=True)
class Fleetwide:
    """State of the operator: what each node told last by (cluster, model), and the average deviation of each device."""

    rules: tuple[tuple[Rule, Unlike], ...]
    options: Peers
    levels: Levels
    told: dict[tuple[str, str], dict[str, Told]] = field(default_factory=dict)
    compared_ns: dict[tuple[str, str], int] = field(default_factory=dict)
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    """By (cluster, uid)."""
    table: Table = field(default_factory=Table)
    about: Callable[[v1.PeerStats, v1.PeerDevice], About] = _plain

    def __post_init__(self) -> None:
        self.table.define("deviation", np.float64, np.nan, _FEATURES)
        self.table.define("at_ns", np.int64, 0, _FEATURES)
        self.table.define("seen_ns", np.int64, 0)


def start(rules: Sequence[Rule], options: Peers, times: Times) -> Fleetwide:
    """A fresh state for the rules that compare devices of a model."""
    mine = tuple((r, r.when) for r in rules if isinstance(r.when, Unlike) and r.when.among == "model")
    return Fleetwide(mine, options, Levels(times))


def step(state: Fleetwide, items: Sequence[v1.PeerStats | Tick]) -> tuple[Fleetwide, list[v1.Finding]]:
    """Findings that begin, end, or are due again. What nobody tells any more expires."""
    found: list[v1.Finding] = []
    for item in items:
        if isinstance(item, Tick):
            for key in state.levels.expired(item.at_ns):
                del state.levels.active[key]
            found += state.levels.repeated(item.at_ns)
            _forget(state, item.at_ns - FORGET_NS)
        elif state.rules and tuple(item.metric) == TOLD:
            found += _heard(state, item)
    return state, found


def _heard(state: Fleetwide, stats: v1.PeerStats) -> list[v1.Finding]:
    """A message is taken once; all nodes of its model are compared with the first that comes a point after the last time."""
    kind = (stats.cluster, stats.model)
    nodes = state.told.setdefault(kind, {})
    known = nodes.get(stats.node)
    if known is not None and stats.taken_at_ns <= known.stats.taken_at_ns:
        return []
    rows = []
    for device in stats.devices:
        key = (stats.cluster, device.uid)
        if key not in state.rows:
            state.rows[key] = state.table.new_row()
        rows.append(state.rows[key])
    means = np.array([device.mean for device in stats.devices], np.float64).reshape(len(rows), len(TOLD))
    nodes[stats.node] = Told(stats, means, np.array(rows, np.intp))
    state.table["seen_ns"][rows] = stats.taken_at_ns
    passed = stats.taken_at_ns - state.compared_ns.get(kind, 0)
    if 0 <= passed < round(state.options.point_seconds * 1e9):
        return []
    state.compared_ns[kind] = stats.taken_at_ns
    oldest = stats.taken_at_ns - round(FRESH_POINTS * state.options.point_seconds * 1e9)
    return _compared(state, [told for told in nodes.values() if told.stats.taken_at_ns >= oldest], stats.taken_at_ns)


def _compared(state: Fleetwide, told: list[Told], at_ns: int) -> list[v1.Finding]:
    x = np.concatenate([t.means for t in told])
    rows = np.concatenate([t.rows for t in told])
    node = np.repeat(np.arange(len(told)), [len(t.rows) for t in told])
    middle, scale, deviation = _deviations(x, node, state.options)
    at = np.full((len(rows), 1), at_ns)
    after, after_ns = peers.sustained(state.table["deviation"][rows], state.table["at_ns"][rows], at, deviation, state.options)
    state.table["deviation"][rows], state.table["at_ns"][rows] = after, after_ns
    now = np.where(after_ns == at_ns, after, np.nan)
    found: list[v1.Finding] = []
    for rule, when in state.rules:
        asked = [peers.NAMES.index(metric) for metric in when.metrics]
        scores = peers.as_score(now[:, asked] * (-1.0 if when.side == "below" else 1.0), state.options)
        known = np.where(np.isnan(scores), -1.0, scores)
        worst = known.argmax(axis=1)
        for k in range(len(rows)):
            score, column = float(known[k, worst[k]]), asked[worst[k]]
            t = told[node[k]]
            device = t.stats.devices[k - int(np.searchsorted(node, node[k]))]
            key = LevelKey(rule.name, t.stats.cluster, device_entity(device.uid))
            active = key in state.levels
            if score < 0 or (score < when.score and not active):
                continue
            if score <= when.clear_score:
                found += state.levels.cleared(key, at_ns)
                continue
            span = state.options.limit_sigmas * scale[k, column]
            judged = Judged(score, "peers", middle[k, column] - span, middle[k, column] + span)
            made = _finding(state, rule, when, t.stats, device, peers.NAMES[column], float(x[k, column]), judged, at_ns)
            found += state.levels.raised(made, until_ns=made.valid_until_ns)
    return found


def _finding(
    state: Fleetwide,
    rule: Rule,
    when: Unlike,
    stats: v1.PeerStats,
    device: v1.PeerDevice,
    metric: str,
    value: float,
    judged: Judged,
    at_ns: int,
) -> v1.Finding:
    return finding(
        rule,
        state.about(stats, device),
        active=True,
        at_ns=at_ns,
        since_ns=at_ns,
        valid_until_ns=at_ns + state.levels.times.valid_ns,
        value=value,
        limit=judged.low if when.side == "below" else judged.high,
        metric=metric,
        judged=judged,
    )


def _deviations(x: Floats, node: NDArray[np.intp], options: Peers) -> tuple[Floats, Floats, Floats]:
    """Of devices (n, TOLD): median and deviation of its like, and how far it is from them where its node does not judge it; NaN where
    there are too few. Like are those in the same small box of utilisation and activity; clocks compare whatever the load."""
    middle, scale, deviation = (np.full((len(x), _FEATURES), np.nan) for _ in range(3))
    load, limit = x[:, _FEATURES], x[:, _FEATURES + 1]
    activity = x[:, _ACTIVITY]
    busy = load >= options.busy
    boxes = np.floor(np.column_stack((load, activity)) / options.load_band)
    known = busy & ~np.isnan(activity).all(axis=1)
    boxes = np.where(np.isnan(boxes), -1.0, boxes)
    watts = np.where(np.isnan(limit), -1.0, np.rint(limit))
    for feature in range(_FEATURES):
        clock = feature == _CLOCK
        key = watts[:, None] if clock else np.column_stack((watts, boxes))
        able = (busy if clock else known) & ~np.isnan(x[:, feature])
        if not able.any():
            continue
        _, group = np.unique(key[able], axis=0, return_inverse=True)
        places = np.flatnonzero(able)
        order = np.argsort(group.reshape(-1), kind="stable")
        for part in np.split(places[order], np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1):
            if len(part) >= GROUP and len(np.unique(node[part])) >= NODES:
                _one_group(x[part, feature], node[part], feature, options, part, middle, scale, deviation)
    return middle, scale, deviation


def _one_group(
    x: Floats,
    node: NDArray[np.intp],
    feature: int,
    options: Peers,
    part: NDArray[np.intp],
    middle: Floats,
    scale: Floats,
    deviation: Floats,
) -> None:
    center = float(np.median(x))
    spread = peers.MAD_TO_SIGMA * float(np.median(np.abs(x - center)))
    unit = max(spread, peers.FEATURES[feature].relative * abs(center), peers.FEATURES[feature].absolute, 1e-300)
    far = (x - center) / unit
    ordered = np.sort(x)
    beside = np.searchsorted(ordered, x + 2 * unit, "right") - np.searchsorted(ordered, x - 2 * unit, "left") - 1
    far = np.where(beside <= peers.COMPANIONS_RATIO * len(x), far, np.clip(far, -1.0, 1.0))
    for n in np.unique(node):
        mates = node == n
        if mates.sum() >= options.group:
            own = float(np.median(far[mates]))
            # beside such company it is the node's own comparison that finds it
            far[mates] = np.where(np.abs(far[mates] - own) >= options.limit_sigmas / 2, 0.0, far[mates])
    middle[part, feature], scale[part, feature], deviation[part, feature] = center, unit, far


def _forget(state: Fleetwide, than_ns: int) -> None:
    """Drop nodes and devices that nobody told of since."""
    seen_ns = state.table["seen_ns"]
    old = [key for key, row in state.rows.items() if seen_ns[row] < than_ns]
    state.table.forget([state.rows.pop(key) for key in old])
    for kind, nodes in list(state.told.items()):
        for name in [name for name, told in nodes.items() if told.stats.taken_at_ns < than_ns]:
            del nodes[name]
        if not nodes:
            del state.told[kind]
            state.compared_ns.pop(kind, None)
