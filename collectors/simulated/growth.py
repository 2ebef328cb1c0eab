"""Counters that grow by chance: whole slots are drawn from the seed, so that the count at any step can be asked for alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

SLOT_SECONDS: Final = 5


def grown(elapsed: int, duration: int, most: float, *, power: int, seed: tuple[int, ...]) -> int:
    """Events counted `elapsed` seconds into a growth of `duration` seconds that expects `most * (elapsed / duration) ** power` of them.

    Poisson in slots of SLOT_SECONDS; never falls, and is the same for the same seed.
    """
    return _totals(duration, most, power, seed)[min(max(elapsed, 0), duration) // SLOT_SECONDS]


@lru_cache(maxsize=1024)
def _totals(duration: int, most: float, power: int, seed: tuple[int, ...]) -> tuple[int, ...]:
    """The count at the beginning of each slot."""
    edges = np.minimum(np.arange(0, duration + SLOT_SECONDS, SLOT_SECONDS), duration)
    expected = most * (edges / duration) ** power
    drawn = np.random.default_rng([*seed, 61]).poisson(np.diff(expected))
    return (0, *np.cumsum(drawn).tolist())
