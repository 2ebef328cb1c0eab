"""What comes from outside, second by second: request arrivals, which services are up, and small noise; drawn in aligned blocks.

Every number is a function of (seed, step). Blocks are always made whole and at multiples of BLOCK, so that a fleet that advances in
one jump sees bit for bit what one that advances second by second sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from collectors.simulated.faults import ActiveFault
    from collectors.simulated.services import Service
    from collectors.simulated.timeline import Timeline

BLOCK: Final = 300
_KNOT: Final = 60
"""Slow noise of the arrivals is interpolated between points this many seconds apart."""
_BURST_SLOT: Final = 2
"""Bursts are drawn once per this many blocks; none lasts longer than a block."""


@dataclass(frozen=True, slots=True)
class Drive:
    """Rows `first_step` ... + BLOCK - 1. `arrivals` (BLOCK, services) requests per second; `capacity` (BLOCK, services) requests per
    second at full clock, 0 while the service is not ready; `noise` (BLOCK, devices) standard normal."""

    first_step: int
    arrivals: NDArray[np.float64]
    capacity: NDArray[np.float64]
    noise: NDArray[np.float64]


class Load:
    def __init__(
        self,
        services: Sequence[Service],
        timeline: Timeline,
        faults: Sequence[ActiveFault],
        *,
        devices: int,
        seed: int,
        period_seconds: float,
        trough_ratio: float | None = None,
    ) -> None:
        self._services = services
        self._timeline = timeline
        self._lost = [
            (a.fault.start_seconds, a.fault.end_seconds, s.number)
            for a in faults
            if a.fault.name == "device_lost"
            for s in services
            if set(s.cards) & set(a.cards)
        ]
        self._devices = devices
        self._seed = seed
        self._period_seconds = period_seconds
        self._capacity = np.array([s.capacity_rps for s in services])
        self._peak = np.array([s.peak_load_ratio for s in services])
        self._trough = np.array([s.trough_ratio if trough_ratio is None else trough_ratio for s in services])
        self._phase = np.array([s.phase_ratio for s in services])

    def block(self, number: int) -> Drive:
        """Steps number * BLOCK up to the next block."""
        first = number * BLOCK
        steps = np.arange(first, first + BLOCK, dtype=np.float64)
        ready = self._capacity_rows(first)
        rate = self._capacity * self._day(steps) * self._slow(number) * self._bursts(number)
        # Nobody sends requests to an instance that is not ready: the load balancer goes elsewhere.
        rng = np.random.default_rng([self._seed, 31, number])
        arrivals = np.where(ready > 0, rng.poisson(rate), 0.0)
        noise = rng.standard_normal((BLOCK, self._devices))
        return Drive(first, arrivals, ready, noise)

    def expected_ratio(self, step: int) -> NDArray[np.float64]:
        """(services,) load to expect at a step, for the state that a warm fleet starts in."""
        expected: NDArray[np.float64] = self._day(np.array([step], dtype=np.float64))[0]
        return expected

    def _day(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        turn = steps[:, None] / self._period_seconds + self._phase
        wave = 0.5 - 0.5 * np.cos(2 * np.pi * turn)
        day: NDArray[np.float64] = self._peak * (self._trough + (1 - self._trough) * wave)
        return day

    def _slow(self, number: int) -> NDArray[np.float64]:
        here, after = (
            np.random.default_rng([self._seed, 32, n]).standard_normal((BLOCK // _KNOT, len(self._services))) for n in (number, number + 1)
        )
        knots = np.concatenate([here, after[:1]])
        at = np.arange(BLOCK)
        k, part = at // _KNOT, ((at % _KNOT) / _KNOT)[:, None]
        ease = part * part * (3 - 2 * part)
        return np.clip(1 + 0.06 * (knots[k] * (1 - ease) + knots[k + 1] * ease), 0.7, 1.3)

    def _bursts(self, number: int) -> NDArray[np.float64]:
        factor = np.ones((BLOCK, len(self._services)))
        at = np.arange(number * BLOCK, (number + 1) * BLOCK)[:, None]
        slot = number // _BURST_SLOT
        for s in (slot - 1, slot):
            if s < 0:
                continue
            rng = np.random.default_rng([self._seed, 33, s])
            shape = len(self._services)
            begin = s * _BURST_SLOT * BLOCK + rng.integers(0, _BURST_SLOT * BLOCK, shape)
            length = rng.integers(20, 90, shape)
            size = np.where(rng.random(shape) < 0.25, rng.uniform(0.1, 0.3, shape), 0.0)
            factor += np.where((at >= begin) & (at < begin + length), size, 0.0)
        return factor

    def _capacity_rows(self, first: int) -> NDArray[np.float64]:
        rows = np.repeat(self._capacity[None, :], BLOCK, axis=0)
        last = first + BLOCK - 1
        for service in self._services:
            i = service.number
            up = np.zeros(BLOCK)
            for life in self._timeline.between(i, first, last):
                until = BLOCK if life.closed is None else min(life.closed - first, BLOCK)
                # A new version is a little faster or slower: the step a deploy leaves in load and latency.
                version = np.random.default_rng([self._seed, 34, i, max(life.deployed, 0)]).uniform(0.93, 1.07)
                up[max(life.ready - first, 0) : max(until, 0)] = version
            rows[:, i] *= up
        for start, end, i in self._lost:
            rows[max(start - first, 0) : max(min(end - first, BLOCK), 0), i] = 0.0
        return rows
