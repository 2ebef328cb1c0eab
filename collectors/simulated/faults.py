"""The fault grammar, `name@start+duration[:scope]`, and which cards of a fleet a fault touches."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collectors.simulated.layout import Layout, Place

FaultName = Literal[
    "thermal",
    "cooling_loss",
    "power_cap",
    "power_brake",
    "memory_leak",
    "ecc_burst",
    "nvlink_degradation",
    "device_lost",
    "driver_hang",
    "slow_card",
    "ghost",
    "recovery_pending",
    "ecc_growth",
    "thermal_drift",
    "pcie_replays",
]
FAULT_NAMES: Final[tuple[FaultName, ...]] = get_args(FaultName)
ScopeKind = Literal["chosen", "card", "node", "rack", "source"]
EXAMPLES: Final = "memory_leak@20s+60s, thermal@30s+60s:card=3, cooling_loss@1m+2m:rack=r1"

_SCOPES: Final = ("card", "node", "rack")
_PERIOD: Final = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?[smh])+")
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smh])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. Times are whole seconds of the scenario; it acts in [start, end).

    `scope` "chosen" leaves the card to the seed; `target` is the card, node or rack of the other scopes; "source" (driver_hang
    only) means the read itself blocks.
    """

    name: FaultName
    start_seconds: int
    duration_seconds: int
    scope: ScopeKind = "chosen"
    target: str = ""

    @property
    def end_seconds(self) -> int:
        return self.start_seconds + self.duration_seconds

    def __str__(self) -> str:
        text = f"{self.name}@{self.start_seconds}s+{self.duration_seconds}s"
        match self.scope:
            case "chosen":
                return text
            case "source":
                return f"{text}:source"
            case kind:
                return f"{text}:{kind}={self.target}"


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """A fault and the numbers of the cards (positions in the fleet's arrays) that it touches; none where the source itself hangs."""

    fault: Fault
    cards: tuple[int, ...]


def parse_fault(text: str) -> Fault:
    """`memory_leak@20s+60s`, `thermal@30s+1m30s:card=3`: a fault. Raises ValueError naming the bad piece, what is allowed and an example.

    Scopes: `card=N` (counted over the whole fleet), `card=NODE/INDEX`, `card=UID`, `node=NODE`, `rack=RACK`, and `source` for
    driver_hang; a node or rack whose name exists in several clusters is written `CLUSTER/NAME`.
    """
    name, at, rest = text.strip().partition("@")
    if name not in FAULT_NAMES:
        near = difflib.get_close_matches(name, FAULT_NAMES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise _bad(text, f"no fault {name!r}{hint} (faults: {', '.join(FAULT_NAMES)})")
    when, colon, scope = rest.partition(":")
    start, plus, duration = when.partition("+")
    if not at or not plus:
        raise _bad(text, f"{name} needs @start+duration, both with a unit (s, m, h)")
    start_seconds = _seconds(text, "start", start)
    duration_seconds = _seconds(text, "duration", duration)
    if duration_seconds < 1:
        raise _bad(text, f"duration {duration!r} is shorter than one second")
    kind, target = _scope(text, name, scope) if colon else ("chosen", "")
    return Fault(name, start_seconds, duration_seconds, cast("ScopeKind", kind), target)


def _bad(text: str, why: str) -> ValueError:
    return ValueError(f"fault {text!r}: {why}; examples: {EXAMPLES}")


def _seconds(text: str, what: str, period: str) -> int:
    if not _PERIOD.fullmatch(period):
        raise _bad(text, f"{what} {period!r} is not a period such as 20s, 1.5m, 1h or 1m30s")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(period))
    if seconds != int(seconds):
        raise _bad(text, f"{what} {period!r} is not a whole number of seconds (the simulation steps by one)")
    return int(seconds)


def _scope(text: str, name: str, scope: str) -> tuple[str, str]:
    if scope in ("source", "scope=source"):
        if name != "driver_hang":
            raise _bad(text, f"scope 'source' is for driver_hang only; {name} takes card=, node= or rack=")
        return "source", ""
    kind, equals, target = scope.partition("=")
    if kind not in _SCOPES or not equals:
        near = difflib.get_close_matches(kind, (*_SCOPES, "source"), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise _bad(text, f"no scope {scope!r}{hint} (scopes: card=3, node=NAME, rack=NAME; source for driver_hang)")
    if not target:
        raise _bad(text, f"scope {kind}= names nothing")
    return kind, target


NEEDS_FREE: Final[frozenset[FaultName]] = frozenset({"ghost"})
"""Faults of cards that nobody uses: in a scope they touch those only."""


def resolve(
    faults: Sequence[Fault], layout: Layout, *, choices: dict[FaultName, Sequence[int]], free: Sequence[int], seed: int
) -> tuple[ActiveFault, ...]:
    """The cards each fault touches. `choices[name]` are the cards that a fault without scope may fall on (the seed picks, and
    several such faults take different ones); `free` are the cards without a service. Raises ValueError where a card, node or rack does
    not exist, naming those that do, and where a fault needs a free card and its scope has none."""
    found: list[ActiveFault] = []
    taken = 0
    for fault in faults:
        match fault.scope:
            case "source":
                cards: tuple[int, ...] = ()
            case "chosen":
                choice = choices[fault.name]
                cards = (choice[(seed + taken) % len(choice)],) if choice else ()
                taken += 1
            case "card":
                cards = (_card(fault, layout),)
            case "node":
                place = _place(fault, {(n.cluster, n.name): n for n in layout.nodes})
                cards = tuple(d.number for d in layout.devices if d.node is place)
            case "rack":
                rack = _place(fault, {(n.cluster, n.rack): n for n in layout.nodes})
                cards = tuple(d.number for d in layout.devices if (d.node.cluster, d.node.rack) == (rack.cluster, rack.rack))
        if fault.name in NEEDS_FREE:
            cards = tuple(card for card in cards if card in free)
            if not cards:
                some = ", ".join(f"{layout.devices[card].node.name}/{layout.devices[card].index}" for card in free[:12])
                raise ValueError(
                    f"fault '{fault}': every card there has a service; {fault.name} needs a free one: {some or 'there is none'}"
                )
        found.append(ActiveFault(fault, cards))
    return tuple(found)


def _place(fault: Fault, places: Mapping[tuple[str, str], Place]) -> Place:
    hits = [place for (cluster, name), place in places.items() if fault.target in (name, f"{cluster}/{name}")]
    if len(hits) == 1:
        return hits[0]
    every = ", ".join(sorted(f"{cluster}/{name}" for cluster, name in places)[:12])
    why = (
        f"{fault.scope} {fault.target!r} is in several clusters; write one of" if hits else f"no {fault.scope} {fault.target!r}; there are"
    )
    raise ValueError(f"fault '{fault}': {why} {every}")


def _card(fault: Fault, layout: Layout) -> int:
    target = fault.target
    if target.isdecimal() and int(target) < len(layout.devices):
        return int(target)
    hits = [d.number for d in layout.devices if target in (d.uid, f"{d.node.name}/{d.index}", f"{d.node.cluster}/{d.node.name}/{d.index}")]
    if len(hits) == 1:
        return hits[0]
    first = layout.devices[0]
    if hits:
        raise ValueError(f"fault '{fault}': card {target!r} is in several clusters; write {first.node.cluster}/{target}")
    some = f"0 to {len(layout.devices) - 1}, or NODE/INDEX such as {first.node.name}/{first.index}"
    raise ValueError(f"fault '{fault}': no card {target!r}; cards are {some}")
