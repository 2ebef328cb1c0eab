"""Memory in use on every card at one step: filled at load and then flat, slowly growing, or leaking when told to."""

from __future__ import annotations

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


def memory_used(
    services: Sequence[Service], timeline: Timeline, settings: Simulated, step: int, *, leak_ratio: NDArray[np.float64]
) -> NDArray[np.int64]:
    """(devices,) bytes; `leak_ratio` (devices,) is the progress of a leak from what the service holds to the card's capacity."""
    capacity, seed = settings.chip.memory_bytes, settings.seed
    devices = len(leak_ratio)
    used = np.zeros(devices)
    noisy = np.zeros(devices, dtype=np.bool_)
    falling = np.zeros(devices)
    cards: list[int] = []
    held: list[float] = []
    ready: list[bool] = []
    for service in services:
        life = timeline.life(service.number, step)
        size = len(service.cards)
        cards += service.cards
        held += [_held(service, life, settings, step)] * size
        ready += [step >= life.ready] * size
        if life.kind == "leak" and step < life.ready:
            # The process is replaced in place; what it had leaked is given back within seconds.
            falling[list(timeline.leaked(service.number, life))] = ((life.ready - step) / (life.ready - life.opened + 1)) ** 2
    used[cards], noisy[cards] = held, ready
    used += np.clip(leak_ratio, 0.0, None) * (capacity - used)
    used += falling * (LEAK_CEILING_RATIO * capacity - used)
    grains = np.random.default_rng([seed, 41, step]).integers(-1, 2, devices)
    used += np.where(noisy, grains * GRAIN_BYTES, 0)
    used = np.clip(used, EMPTY_BYTES, LEAK_CEILING_RATIO * capacity)
    return (used // GRAIN_BYTES * GRAIN_BYTES).astype(np.int64)


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
