"""The same physics for stretches in which nothing throttles and no fault acts: whole blocks at once, only the lags and queues step by step.

Every operation is the one `physics.run` makes, in the same order, so both give the same bits (tested); this one is several times
faster, which is what days of simulated time cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collectors.simulated.physics import (
    CORE_GAIN,
    DYNAMIC_WATTS,
    LOAD_GAIN,
    LOAD_NOISE_RATIO,
    MEMORY_GAIN,
    MEMORY_LOAD_CELSIUS,
    MEMORY_OFFSET_CELSIUS,
    QUEUE_SECONDS,
    RESISTANCE_CELSIUS_PER_WATT,
    WINDOW_SECONDS,
    Boundary,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collectors.simulated.effects import Effects
    from collectors.simulated.load import Drive
    from collectors.simulated.physics import Rig, State

    Floats = NDArray[np.float64]


def is_calm(rig: Rig, state: State, drive: Drive, effects: Effects) -> bool:
    """Whether no card can throttle in this block: no fault acts, every clock is full now, and the highest load that the block's noise
    allows stays below the power limit and, settled, below the software thermal limit."""
    if effects.act:
        return False
    if state.clock.min() < 1.0 or state.halved.any() or state.excess.any():
        return False
    chip = rig.chip
    most = chip.idle_watts + rig.resident + DYNAMIC_WATTS * rig.gain * (1 + LOAD_NOISE_RATIO * drive.noise.max(axis=0))
    hottest = np.maximum(state.natural, rig.air + RESISTANCE_CELSIUS_PER_WATT * most)
    return bool(most.max() <= chip.power_limit_watts and hottest.max() <= chip.software_thermal_celsius)


def run_calm(rig: Rig, state: State, drive: Drive, until: int) -> None:
    """What `physics.run` does, for a block that `is_calm`."""
    first = state.step
    rows = slice(first - drive.first_step, until - drive.first_step)
    able = drive.capacity[rows]
    waiting, served, backlog = _queues(state.backlog, drive.arrivals[rows], able)
    up = able > 0
    used = np.divide(served, able, out=np.zeros_like(able), where=up)
    waits = served * np.divide(waiting, able, out=np.zeros_like(able), where=up)
    loads = np.zeros((until - first, able.shape[1] + 1))
    loads[:, :-1] = _lag(state.service_load[:-1], used, LOAD_GAIN)
    load = loads[:, rig.service_of] * rig.gain
    dynamic = DYNAMIC_WATTS * load * (1 + LOAD_NOISE_RATIO * drive.noise[rows])
    power = rig.chip.idle_watts + rig.resident + dynamic
    natural = _lag(state.natural, rig.air + RESISTANCE_CELSIUS_PER_WATT * power, CORE_GAIN)
    memory = _lag(state.memory_temperature, natural + MEMORY_OFFSET_CELSIUS + MEMORY_LOAD_CELSIUS * load, MEMORY_GAIN)
    total_served, total_waited = _totals(state.served, served), _totals(state.waited, waits)

    state.step = until
    state.backlog, state.service_load = backlog[-1].copy(), loads[-1].copy()
    state.served, state.waited = total_served[-1].copy(), total_waited[-1].copy()
    state.power, state.natural, state.memory_temperature = power[-1].copy(), natural[-1].copy(), memory[-1].copy()
    state.temperature = state.natural
    state.energy = _totals(state.energy, power)[-1].copy()
    state.work = _totals(state.work, load)[-1].copy()
    state.link_work = _totals(state.link_work, load)[-1].copy()
    for step in range(first - first % WINDOW_SECONDS + WINDOW_SECONDS, until + 1, WINDOW_SECONDS):
        n = step - first - 1
        state.windows.append(
            Boundary(step, total_served[n].copy(), total_waited[n].copy(), backlog[n].copy(), loads[n, :-1].copy(), np.ones(able.shape[1]))
        )


def _queues(backlog: Floats, arrivals: Floats, able: Floats) -> tuple[Floats, Floats, Floats]:
    """(before, served, after) per second and service."""
    before, served, after = np.empty_like(able), np.empty_like(able), np.empty_like(able)
    most = QUEUE_SECONDS * able
    demand = np.empty_like(backlog)
    for n in range(len(able)):
        before[n] = backlog
        np.add(backlog, arrivals[n], out=demand)
        np.minimum(demand, able[n], out=served[n])
        backlog = after[n]
        np.subtract(demand, served[n], out=backlog)
        np.minimum(backlog, most[n], out=backlog)
    return before, served, after


def _lag(now: Floats, goal: Floats, gain: float) -> Floats:
    """Rows of a first-order lag that starts from `now` and follows `goal`."""
    rows = np.empty_like(goal)
    step = np.empty_like(now)
    for n in range(len(goal)):
        np.subtract(goal[n], now, out=step)
        np.multiply(step, gain, out=step)
        now = np.add(now, step, out=rows[n])
    return rows


def _totals(before: Floats, rows: Floats) -> Floats:
    """Running totals: `accumulate` adds row by row, as `+=` would, and not pairwise as `sum` may."""
    totals: Floats = np.add.accumulate(np.concatenate([before[None, :], rows]), axis=0)[1:]
    return totals
