"""When each service starts, restarts and is deployed: an explicit function of the seed and the faults, never of what happened before."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collectors.simulated.faults import ActiveFault
    from collectors.simulated.services import Service

ChangeKind = Literal["start", "deploy", "restart", "leak", "lost"]

SLOT_SECONDS: Final = 6 * 3600
"""Deploys are drawn once per slot and service."""
CHANGE_ODDS: Final = 0.3
CALM_SECONDS: Final = 900
"""Nothing is deployed so early that a short demo would show it."""
GUARD_SECONDS: Final = 120
"""Nothing planned happens this close to another change of the service, or to a fault that restarts it."""

LOAD_SECONDS: Final = 40
"""2 GiB to full: what vLLM and SGLang take to load a model (issue 3)."""
_GAP: Final[dict[ChangeKind, int]] = {"start": 0, "deploy": 8, "restart": 5, "leak": 1, "lost": 2}
_LOAD: Final[dict[ChangeKind, int]] = {
    "start": LOAD_SECONDS,
    "deploy": LOAD_SECONDS,
    "restart": LOAD_SECONDS,
    "leak": 2,
    "lost": LOAD_SECONDS,
}


@dataclass(frozen=True, slots=True)
class Life:
    """A service instance from `opened` to `closed` (steps; None: beyond the horizon), begun by `kind`. `ready` is when it serves.

    `deployed` is the step of the deploy it runs: it names the pod.
    """

    opened: int
    ready: int
    kind: ChangeKind
    deployed: int
    closed: int | None


class Timeline:
    """Lives of all services, made as far as anyone has asked."""

    def __init__(self, services: Sequence[Service], faults: Sequence[ActiveFault], *, seed: int, warm: bool) -> None:
        self._services = services
        self._seed = seed
        self._slots = 0
        self._births: list[int] = []
        self._changes: list[list[tuple[int, ChangeKind]]] = []
        self._asked: dict[int, tuple[int, Life]] = {}
        """The life last asked for, by service, and since when its answer holds: most steps are in the same life as the step before."""
        self._forced: list[list[tuple[int, int, ChangeKind]]] = []
        self._leaks = [(f.fault.end_seconds, frozenset(f.cards)) for f in faults if f.fault.name == "memory_leak"]
        rng = np.random.default_rng([seed, 21])
        for service in services:
            age = int(rng.integers(3600, 48 * 3600))
            if service.memory == "grow":
                age = int(rng.integers(service.growth_period_seconds // 10, service.growth_period_seconds * 9 // 10))
            self._births.append(-age if warm else 2 + service.number % 5)
            forced = [
                (f.fault.start_seconds, f.fault.end_seconds, kind)
                for f in faults
                if (kind := _RESTARTS.get(f.fault.name)) and set(f.cards) & set(service.cards)
            ]
            self._forced.append(forced)
            self._changes.append(sorted({end: (end, kind) for _, end, kind in forced}.values()))

    def ensure(self, step: int) -> None:
        """Extend the horizon at least one slot beyond `step`."""
        while self._slots * SLOT_SECONDS <= step + SLOT_SECONDS:
            self._extend(self._slots)
            self._slots += 1

    @property
    def known_until(self) -> int:
        """Changes before this step are all known."""
        return self._slots * SLOT_SECONDS

    def _extend(self, slot: int) -> None:
        begin, end = slot * SLOT_SECONDS, (slot + 1) * SLOT_SECONDS
        self._asked.clear()
        rng = np.random.default_rng([self._seed, 22, slot])
        happens = rng.random(len(self._services)) < CHANGE_ODDS
        offsets = rng.integers(CALM_SECONDS, SLOT_SECONDS, size=len(self._services))
        deploys = rng.random(len(self._services)) < 0.7
        for service in self._services:
            i = service.number
            planned: list[tuple[int, ChangeKind]] = []
            if happens[i]:
                planned.append((begin + int(offsets[i]), "deploy" if deploys[i] else "restart"))
            if service.memory == "grow":
                # A growing service restarts when it has grown for its period.
                period = service.growth_period_seconds
                first = self._births[i] + period
                k = max(0, -(-(begin - first) // period))
                planned += [(first + j * period, "restart") for j in range(k, k + SLOT_SECONDS // period + 2) if first + j * period < end]
            for at, kind in sorted(planned):
                if self._free(i, at):
                    insort(self._changes[i], (at, kind))

    def _free(self, i: int, at: int) -> bool:
        if at < min(CALM_SECONDS, SLOT_SECONDS):
            return False
        if any(start - GUARD_SECONDS <= at <= end + GUARD_SECONDS for start, end, _ in self._forced[i]):
            return False
        return all(abs(at - other) > GUARD_SECONDS for other, _ in self._changes[i])

    def life(self, service: int, step: int) -> Life:
        """The life that the service is in at `step`, or that comes after the gap it is in then (its `opened` lies ahead)."""
        self.ensure(step)
        since, life = self._asked.get(service, (step + 1, None))
        if life is not None and since <= step and (life.closed is None or step < life.closed):
            return life
        changes = self._changes[service]
        k = bisect_right(changes, step, key=_at)
        life = self._life(service, k)
        # Before its first change a service is in the life that it was born into, at any step.
        self._asked[service] = (changes[k - 1][0] if k else -(2**62), life)
        return life

    def _life(self, service: int, k: int) -> Life:
        changes = self._changes[service]
        closed = changes[k][0] if k < len(changes) else None
        if k == 0:
            birth = self._births[service]
            return Life(birth, birth + LOAD_SECONDS, "start", birth, closed)
        at, kind = changes[k - 1]
        opened = at + _GAP[kind]
        deployed = next((a for a, b in reversed(changes[:k]) if b == "deploy"), self._births[service])
        return Life(opened, opened + _LOAD[kind], kind, deployed, closed)

    def leaked(self, service: int, life: Life) -> frozenset[int]:
        """Cards of the service whose leak ended with the restart that began this life."""
        cards = frozenset(self._services[service].cards)
        return frozenset[int]().union(*(c & cards for end, c in self._leaks if end + _GAP["leak"] == life.opened))

    def between(self, service: int, after: int, until: int) -> Iterator[Life]:
        """Lives that overlap (after, until], oldest first."""
        self.ensure(until)
        changes = self._changes[service]
        first = bisect_right(changes, after, key=_at)
        last = bisect_right(changes, until, key=_at)
        for k in range(first, last + 1):
            life = self._life(service, k)
            # Two faults that end together leave a life of no length between them.
            if life.closed is None or life.closed > life.opened:
                yield life


def _at(change: tuple[int, ChangeKind]) -> int:
    return change[0]


_RESTARTS: Final[dict[str, ChangeKind]] = {"memory_leak": "leak", "device_lost": "lost"}
