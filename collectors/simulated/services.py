"""Which services run where: most fill their cards with memory when they load, a minority grow, and some cards stay idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from collectors.simulated.layout import Device, Layout

MemoryKind = Literal["preallocate", "grow"]

NAMES: Final = ("chat", "search", "code", "vision", "rerank", "sessions", "speech", "translate")
GROWING: Final = "sessions"
"""One name in eight keeps state on the card and grows; the others pre-allocate as vLLM and SGLang do (issue 3)."""

_SIZES: Final = (1, 2, 4, 0)
"""Cards of a service; 0 leaves a card idle."""
_SIZE_ODDS: Final = (0.60, 0.20, 0.14, 0.06)
_SPARE_FROM: Final = 4
"""On nodes of at least this many cards the last may be kept free; on the first node of a fleet it always is."""


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """One instance (pod) of a service. `cards` are device numbers on one node; rates are of the whole instance.

    `capacity_rps` is what it serves at full clock; `peak_load_ratio` and `trough_ratio` bound its day; `memory_ratio` is the share
    of each card's memory that a pre-allocating one holds, and the top of a growing one before it restarts.
    """

    number: int
    cluster: str
    node: str
    namespace: str
    name: str
    replica: int
    model: str
    cards: tuple[int, ...]
    memory: MemoryKind
    memory_ratio: float
    memory_base_ratio: float
    growth_period_seconds: int
    collect_period_seconds: int
    capacity_rps: float
    peak_load_ratio: float
    trough_ratio: float
    phase_ratio: float
    prompt_tokens: float
    generated_tokens: float
    prefill_seconds: float
    token_seconds: float


def place(layout: Layout, seed: int) -> tuple[Service, ...]:
    """Services over the layout's cards, drawn from the seed. At least one card of the fleet holds a pre-allocating service alone."""
    rng = np.random.default_rng([seed, 11])
    services: list[Service] = []
    count: dict[str, int] = {}
    for devices in layout.by_node:
        free = list(devices)
        if len(free) >= _SPARE_FROM and (rng.random() < 0.5 or not services):
            free.pop()
        while free:
            size = int(rng.choice(_SIZES, p=_SIZE_ODDS))
            if not services:
                size = 1
            if size == 0:
                del free[0]
                continue
            if size > len(free):
                size = 1
            cards, free = free[:size], free[size:]
            nth = count.get(cards[0].node.cluster, 0)
            count[cards[0].node.cluster] = nth + 1
            services.append(_service(len(services), nth, cards, rng))
    return tuple(services)


def _service(number: int, nth: int, cards: list[Device], rng: np.random.Generator) -> Service:
    name = NAMES[nth % len(NAMES)]
    grows = name == GROWING
    return Service(
        number=number,
        cluster=cards[0].node.cluster,
        node=cards[0].node.name,
        namespace="serving" if nth % 3 else "research",
        name=name,
        replica=nth // len(NAMES),
        model=f"sim-{name}-{8 * len(cards)}b",
        cards=tuple(d.number for d in cards),
        memory="grow" if grows else "preallocate",
        # 72 of 80 GiB: what a server started with 0.9 of the memory takes and keeps. A growing one restarts well below that, so that
        # an hour more of its slope (at most 0.10 / h) would still not reach 0.95.
        memory_ratio=float(rng.uniform(0.74, 0.82)) if grows else 0.90 - float(rng.uniform(0.0, 0.008)),
        memory_base_ratio=float(rng.uniform(0.44, 0.52)),
        growth_period_seconds=int(rng.integers(4 * 3600, 10 * 3600)),
        collect_period_seconds=int(rng.integers(180, 420)),
        capacity_rps=float(rng.uniform(6.0, 24.0)) * len(cards) ** 0.8,
        peak_load_ratio=float(rng.uniform(0.5, 0.78)),
        trough_ratio=float(rng.choice([0.04, 0.15, 0.3])),
        phase_ratio=0.36 + float(rng.uniform(-0.05, 0.05)),
        prompt_tokens=float(rng.uniform(300, 1500)),
        generated_tokens=float(rng.uniform(120, 400)),
        prefill_seconds=float(rng.uniform(0.06, 0.25)),
        token_seconds=float(rng.uniform(0.010, 0.028)),
    )
