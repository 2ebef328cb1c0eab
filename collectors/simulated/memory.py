"""Memory in use on every card at one step: filled at load and then flat, slowly growing, or leaking when told to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from collectors.simulated.effects import LEAK_CEILING_RATIO
from collectors.simulated.settings import GIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from collectors.simulated.services import Service
    from collectors.simulated.settings import Simulated
    from collectors.simulated.timeline import Life, Timeline

EMPTY_BYTES: Final = 4 * 1024**2
"""What an idle card shows beside what is reserved."""
CONTEXT_BYTES: Final = 2 * GIB
"""What a server takes before it loads its model."""
GRAIN_BYTES: Final = 2 * 1024**2
COLLECTED_RATIO: Final = 0.015
"""Share of the card that a growing service's collector frees each time."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Steps [since, until) in which no service opens, gets ready or closes: `used` and `noisy` (devices,) are of the services that hold
    the same all along, `moving` are the others with their lives."""

    since: int
    until: int
    used: NDArray[np.float64]
    noisy: NDArray[np.bool_]
    moving: tuple[tuple[Service, Life], ...]


class Memory:
    """Memory in use, for any step; what it keeps only saves asking again."""

    def __init__(self, services: Sequence[Service], timeline: Timeline, settings: Simulated, devices: int) -> None:
        self._services = services
        self._timeline = timeline
        self._settings = settings
        self._devices = devices
        self._stretch: _Stretch | None = None

    def used(self, step: int, leak_ratio: NDArray[np.float64]) -> NDArray[np.int64]:
        """(devices,) bytes; `leak_ratio` (devices,) is the progress of a leak from what the service holds to the card's capacity."""
        capacity, seed = self._settings.chip.memory_bytes, self._settings.seed
        self._timeline.ensure(step)
        stretch = self._stretch
        if stretch is None or not stretch.since <= step < stretch.until:
            stretch = self._stretch = self._begun(step)
        used = stretch.used.copy()
        falling: NDArray[np.float64] | None = None
        for service, life in stretch.moving:
            used[list(service.cards)] = _held(service, life, self._settings, step)
            if life.kind == "leak" and step < life.ready:
                # The process is replaced in place; what it had leaked is given back within seconds.
                falling = np.zeros(self._devices) if falling is None else falling
                falling[list(self._timeline.leaked(service.number, life))] = ((life.ready - step) / (life.ready - life.opened + 1)) ** 2
        used += np.clip(leak_ratio, 0.0, None) * (capacity - used)
        if falling is not None:
            used += falling * (LEAK_CEILING_RATIO * capacity - used)
        grains = np.random.default_rng([seed, 41, step]).integers(-1, 2, self._devices)
        used += np.where(stretch.noisy, grains * GRAIN_BYTES, 0)
        used = np.clip(used, EMPTY_BYTES, LEAK_CEILING_RATIO * capacity)
        return (used // GRAIN_BYTES * GRAIN_BYTES).astype(np.int64)

    def _begun(self, step: int) -> _Stretch:
        used = np.zeros(self._devices)
        noisy = np.zeros(self._devices, dtype=np.bool_)
        moving: list[tuple[Service, Life]] = []
        until = self._timeline.known_until
        for service in self._services:
            life = self._timeline.life(service.number, step)
            until = min([until, *(at for at in (life.opened, life.ready, life.closed) if at is not None and at > step)])
            cards = list(service.cards)
            if step >= life.ready and service.memory == "preallocate":
                used[cards] = _held(service, life, self._settings, step)
            else:
                moving.append((service, life))
            noisy[cards] = step >= life.ready
        return _Stretch(step, until, used, noisy, tuple(moving))


def _held(service: Service, life: Life, settings: Simulated, step: int) -> float:
    capacity = settings.chip.memory_bytes
    full = service.memory_ratio * capacity
    if service.memory == "grow":
        age = max(step - life.opened, 0)
        grown = min(1.0, age / service.growth_period_seconds)
        tooth = age % service.collect_period_seconds / service.collect_period_seconds
        full = (service.memory_base_ratio + (service.memory_ratio - service.memory_base_ratio) * grown + COLLECTED_RATIO * tooth) * capacity
    if settings.deploy_memory_ratio and life.deployed > 0:
        full *= 1 - settings.deploy_memory_ratio * _version(settings.seed, service.number, life.deployed)
    if life.kind == "leak":
        return full
    if step < life.opened:
        return 0.0
    loaded = min(1.0, (step - life.opened) / (life.ready - life.opened))
    return CONTEXT_BYTES + (full - CONTEXT_BYTES) * loaded


@lru_cache(maxsize=4096)
def _version(seed: int, service: int, deployed: int) -> float:
    """How much leaner, 0-1, the version deployed at that step is."""
    return float(np.random.default_rng([seed, 42, service, deployed]).random())
