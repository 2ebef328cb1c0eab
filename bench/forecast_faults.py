"""Leaks, warming and growing errors put into simulated fleets: which are foretold, how long before, and what never comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bench.forecast_corpus import STARTED_AT_NS
from bench.forecast_line import Alerted, Line, run
from collectors.simulated.effects import LEAK_FULL_AT_RATIO
from collectors.simulated.fleet import Fleet
from collectors.simulated.settings import Simulated
from forecasting.targets import CORE_TEMPERATURE, ECC_CORRECTED, MEMORY
from schemas.identity import device_entity

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SHORTEST_MINUTES: Final = 30
LONGEST_MINUTES: Final = 60
"""A ramp lasts so long from its onset until its limit is reached (issue 5)."""

QUIET_MINUTES: Final = 120
"""Nothing goes wrong for so long, so that there is a past to tell a ramp from."""

TOGETHER: Final = 50
"""Fleets (seeds) that one forecaster follows at a time; screening costs nearly the same for one."""

_WARMING_CROSSES_AT: Final = 0.82
"""Of its duration, when a card that overheats reaches slowdown: it slows down a little before and so stays cooler for a while."""

_PAST_LIMIT: Final = 1.3
"""A rate of errors goes on growing to this share of its limit."""

_AFTERWARDS_MINUTES: Final = 5


class Kind(NamedTuple):
    """A kind of fault, and the metric in which it is foretold."""

    name: str
    metric: str


KINDS: Final = (
    Kind("memory_leak", MEMORY.metric),
    Kind("thermal_drift", CORE_TEMPERATURE.metric),
    Kind("ecc_growth", ECC_CORRECTED.metric),
)


@dataclass(slots=True)
class Injected:
    """One fault. `crossed` is the minute at which its series was first at its limit; None while it was not."""

    kind: Kind
    cluster: str
    entity: str
    card: int
    onset: int
    ramp: int
    crossed: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome of some seeds: every fault with the minute of its first alert (None: missed), and alerts that belong to none."""

    faults: list[tuple[Injected, float | None]] = field(default_factory=list)
    false: list[Alerted] = field(default_factory=list)
    true: int = 0


def injected(seeds: list[int], advance: Callable[[int], None] = lambda _: None) -> Told:
    """One node of eight cards per seed, on which each kind of fault befalls a card of its own, an onset each."""
    fleets, faults, changes = [], [], {}
    for seed in seeds:
        fleet, own = _broken(seed)
        fleets.append(fleet)
        faults += own
        growth = next(fault for fault in own if fault.kind.name == "ecc_growth")
        changes[growth.cluster] = _Errors(growth, np.random.default_rng([seed, 91])).add
    minutes = max(f.onset + round(f.ramp * _PAST_LIMIT) for f in faults) + _AFTERWARDS_MINUTES
    recent: dict[str, list[float]] = {}

    def look(minute: int, sent: dict[str, dict[str, NDArray[np.float64]]]) -> None:
        for fault in faults:
            if fault.crossed is None and _at_limit(fault, sent[fault.cluster], recent):
                fault.crossed = minute
        advance(1)

    line = run(fleets, minutes, changes, look)
    return _judged(faults, line)


def _broken(seed: int) -> tuple[Fleet, list[Injected]]:
    rng = np.random.default_rng([seed, 90])
    cluster = f"s{seed}"
    whole = _fleet(cluster, seed, ())
    alone = [s.cards[0] for s in whole.services if s.memory == "preallocate" and len(s.cards) == 1]
    leaking = int(rng.choice(alone))
    warm, failing = (int(card) for card in rng.choice([c for c in range(len(whole.layout.devices)) if c != leaking], 2, replace=False))
    faults, texts = [], []
    for kind, card in zip(KINDS, (leaking, warm, failing), strict=True):
        onset = QUIET_MINUTES + int(rng.integers(0, 30))
        ramp = int(rng.integers(SHORTEST_MINUTES, LONGEST_MINUTES + 1))
        faults.append(Injected(kind, cluster, device_entity(whole.layout.devices[card].uid), card, onset, ramp))
    held = whole.services[next(s.number for s in whole.services if leaking in s.cards)].memory_ratio
    leak_share = LEAK_FULL_AT_RATIO * (MEMORY.limit_ratio - held) / (1 - held)
    texts.append(f"memory_leak@{faults[0].onset}m+{round(faults[0].ramp / leak_share)}m:card={leaking}")
    texts.append(f"thermal@{faults[1].onset}m+{round(faults[1].ramp / _WARMING_CROSSES_AT)}m:card={warm}")
    return _fleet(cluster, seed, tuple(texts)), faults


def _fleet(cluster: str, seed: int, faults: tuple[str, ...], *, nodes: int = 1, nodes_per_rack: int = 2) -> Fleet:
    settings = Simulated(
        clusters=(cluster,),
        nodes=nodes,
        nodes_per_rack=nodes_per_rack,
        seed=seed,
        faults=faults,
        trough_ratio=0.0 if seed % 2 else None,
        deploy_memory_ratio=0.15,
    )
    return Fleet(settings, clusters=(cluster,), started_at_ns=STARTED_AT_NS)


@dataclass(slots=True)
class _Errors:
    """Corrected errors of one card, Poisson around a rate that grows in proportion to time until it is past its limit."""

    fault: Injected
    rng: np.random.Generator
    total: int = 0

    def add(self, minute: int, columns: dict[str, NDArray[np.float64]]) -> None:
        share = min(_PAST_LIMIT, max(0.0, (minute - self.fault.onset) / self.fault.ramp))
        assert ECC_CORRECTED.limit_value is not None
        self.total += int(self.rng.poisson(ECC_CORRECTED.limit_value * share))
        columns[ECC_CORRECTED.metric] = columns[ECC_CORRECTED.metric].copy()
        columns[ECC_CORRECTED.metric][self.fault.card] += self.total


def _at_limit(fault: Injected, columns: dict[str, NDArray[np.float64]], recent: dict[str, list[float]]) -> bool:
    value = float(columns[fault.kind.metric][fault.card])
    match fault.kind.name:
        case "memory_leak":
            return value >= MEMORY.limit_ratio * float(columns["memory_total_bytes"][fault.card])
        case "thermal_drift":
            return value >= float(columns["temperature_slowdown_celsius"][fault.card])
        case _:
            counts = recent.setdefault(f"{fault.cluster}/{fault.entity}", [])
            counts.append(value)
            steps = ECC_CORRECTED.average_steps
            assert ECC_CORRECTED.limit_value is not None
            return len(counts) > steps and (counts[-1] - counts[-1 - steps]) / steps >= ECC_CORRECTED.limit_value


def _judged(faults: list[Injected], line: Line) -> Told:
    """The first alert of the fault's own metric before its limit foretells it; any other alert about a card while its fault lasts is put
    down to the fault; all others are false."""
    told = Told()
    true = 0
    for fault in faults:
        end = fault.crossed if fault.crossed is not None else np.inf
        first = [a.minute for a in line.alerted if _of(a, fault) and a.metric == fault.kind.metric and fault.onset <= a.minute < end]
        if fault.crossed is not None:
            told.faults.append((fault, min(first) if first else None))
    for alert in line.alerted:
        if any(_of(alert, fault) and alert.minute >= fault.onset for fault in faults):
            true += 1
        else:
            told.false.append(alert)
    return Told(told.faults, told.false, true)


def _of(alert: Alerted, fault: Injected) -> bool:
    return (alert.cluster, alert.entity) == (fault.cluster, fault.entity)


class Quiet(NamedTuple):
    """What was foretold on days on which nothing broke."""

    false: list[Alerted]
    series_days: float


def clean(seed: int, hours: int, nodes: int, advance: Callable[[int], None] = lambda _: None) -> Quiet:
    """One fleet, one or more days: diurnal load, growing services with their collector's teeth, restarts, deploys, idle nights."""
    fleet = _fleet(f"clean{seed}", seed, (), nodes=nodes)
    followed: set[str] = set()

    def look(minute: int, sent: dict[str, dict[str, NDArray[np.float64]]]) -> None:
        for columns in sent.values():
            followed.update(set(columns) - {"memory_total_bytes", "temperature_slowdown_celsius", "power_limit_watts"})
        advance(1)

    line = run([fleet], hours * 60, {}, look)
    return Quiet(line.alerted, len(fleet.layout.devices) * len(followed) * hours / 24)


class Rack(NamedTuple):
    """A rack that warms up as a whole: cards told of, and incidents."""

    cards: int
    alerted: int
    incidents: int


def rack(seed: int, nodes: int, advance: Callable[[int], None] = lambda _: None) -> Rack:
    """All cards of one rack drift towards slowdown at once."""
    ramp = (SHORTEST_MINUTES + LONGEST_MINUTES) // 2
    text = f"thermal@{QUIET_MINUTES}m+{round(ramp / _WARMING_CROSSES_AT)}m:rack=r1"
    fleet = _fleet(f"rack{seed}", seed, (text,), nodes=nodes, nodes_per_rack=nodes)
    line = run([fleet], QUIET_MINUTES + ramp + _AFTERWARDS_MINUTES, {}, lambda *_: advance(1))
    return Rack(len(fleet.layout.devices), len({a.entity for a in line.alerted}), len({a.incident for a in line.alerted}))


_LOAD_MINUTES: Final = (1, 3, 8, 15)
"""How long models take to load: from a warm cache to a slow file server."""

_CHANGES_MINUTES: Final = 180


def changes(seed: int, advance: Callable[[int], None] = lambda _: None) -> int:
    """Predictive alerts on cards on which a model is loaded, that are resized, or cut into partitions: none is right.

    The cards are those of a fleet in which nothing breaks, with their memory replaced.
    """
    fleet = _fleet(f"changes{seed}", seed, (), nodes=4)
    rng = np.random.default_rng([seed, 92])
    cards = len(fleet.layout.devices)
    at = rng.integers(40, 120, cards)
    long = rng.choice(_LOAD_MINUTES, cards)
    held = rng.uniform(0.6, 0.93, cards)

    def change(minute: int, columns: dict[str, NDArray[np.float64]]) -> None:
        total = columns["memory_total_bytes"].copy()
        share = np.clip((minute - at) / long, 0.0, 1.0)
        grain = rng.integers(-1, 2, cards) * 2**21
        loaded = (0.02 + (held - 0.02) * share) * total + grain
        resized = 0.55 * total + grain
        columns["memory_used_bytes"] = np.where(np.arange(cards) % 2 == 0, loaded, resized)
        # A resized card has half its memory from then on, which puts what it holds near the new limit or beyond it.
        columns["memory_total_bytes"] = np.where((np.arange(cards) % 4 == 1) & (minute >= at), 0.6 * total, total)
        # One that was cut up shows a seventh of it, and what is held there.
        cut = (np.arange(cards) % 4 == 3) & (minute >= at)
        columns["memory_total_bytes"] = np.where(cut, total / 7, columns["memory_total_bytes"])
        columns["memory_used_bytes"] = np.where(cut, 0.85 * total / 7 + grain, columns["memory_used_bytes"])

    line = run([fleet], _CHANGES_MINUTES, {f"changes{seed}": change}, lambda *_: advance(1))
    return len(line.alerted)
