"""The part of the model with memory: queues, clocks, power and temperature, advanced in fixed steps of one second.

Constants and where they come from:

* Idle 70 W at 345 MHz and 41 °C core / 48 °C memory; limits 700 W, 1980 MHz; T.Limit margins that make 87 / 89 / 95 °C software
  limit, slowdown and shutdown: a capture of a real H100 80GB HBM3 (driver 590.48.01), held in `settings.Chip`.
* Healthy training runs at 692–699 W and inference below it; a card under a power cap shows the software-power-cap bit and no
  other: measured H100 telemetry at 10 Hz. Power leads temperature by 0–3 s with r up to 0.93, hence the short core lag.
* Thermal resistance and air temperature are chosen so that a full load settles below 79 °C, the highest value in the published
  distribution of a production cluster (AcmeTrace, Kalos).
* Exponent 2.2 of power over clock: between f (leakage-bound) and f³ (voltage scaling); an assumption, as are lags and the share
  of an inference request that waits for memory and not for the core clock.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from schemas.telemetry import v1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collectors.simulated.effects import Effects
    from collectors.simulated.load import Drive
    from collectors.simulated.settings import Chip

    Floats = NDArray[np.float64]

WINDOW_SECONDS: Final = 10

RESIDENT_WATTS: Final = 48.0
"""A process on the card keeps it at full clock: this much above idle."""
DYNAMIC_WATTS: Final = 545.0
"""Full load at full clock on top of that."""
LOAD_NOISE_RATIO: Final = 0.01
POWER_EXPONENT: Final = 2.2
AIR_CELSIUS: Final = 33.0
SLOT_GRADIENT_CELSIUS: Final = 5.0
"""Cards at the back of the chassis get air that the front ones have warmed."""
RESISTANCE_CELSIUS_PER_WATT: Final = 0.050
CORE_LAG_SECONDS: Final = 12.0
MEMORY_LAG_SECONDS: Final = 25.0
MEMORY_OFFSET_CELSIUS: Final = 7.0
MEMORY_LOAD_CELSIUS: Final = 6.0
OVERHEAT_CELSIUS: Final = 19.0
"""A thermal fault drives the core this far over slowdown, less what the card gains by throttling."""
DRIFT_CELSIUS: Final = 2.0
"""Dust and a worn fan only just make it to slowdown."""
EXCESS_LAG_SECONDS: Final = 15.0
SOFTWARE_SLOPE: Final = 0.06
"""Clock given up per °C above the software limit."""
HYSTERESIS_CELSIUS: Final = 3.0
MEMORY_BOUND_RATIO: Final = 0.35
"""Part of the throughput that does not depend on the core clock."""
LINK_BOUND_RATIO: Final = 0.3
"""Part of the throughput of cards that work together that depends on the interconnect; an assumption."""
UTILIZATION_LAG_SECONDS: Final = 10.0
"""A request occupies the card for several seconds, so load is smoother than arrivals."""
QUEUE_SECONDS: Final = 120.0
"""Requests that would wait longer time out."""

CORE_GAIN: Final = -math.expm1(-1 / CORE_LAG_SECONDS)
MEMORY_GAIN: Final = -math.expm1(-1 / MEMORY_LAG_SECONDS)
LOAD_GAIN: Final = 1 / UTILIZATION_LAG_SECONDS
"""Steps of one second of the first-order lags."""

IDLE_BIT: Final = 1 << v1.ThrottleReason.THROTTLE_REASON_IDLE
_POWER_CAP: Final = 1 << v1.ThrottleReason.THROTTLE_REASON_SOFTWARE_POWER_CAP
_SOFTWARE_THERMAL: Final = 1 << v1.ThrottleReason.THROTTLE_REASON_SOFTWARE_THERMAL
_HARDWARE_THERMAL: Final = (
    1 << v1.ThrottleReason.THROTTLE_REASON_HARDWARE_SLOWDOWN | 1 << v1.ThrottleReason.THROTTLE_REASON_HARDWARE_THERMAL
)
_BRAKE: Final = 1 << v1.ThrottleReason.THROTTLE_REASON_HARDWARE_SLOWDOWN | 1 << v1.ThrottleReason.THROTTLE_REASON_HARDWARE_POWER_BRAKE


@dataclass(frozen=True, slots=True)
class Rig:
    """Constants of one fleet, arrays over devices. `service_of` is the device's service, or the number of services for an idle card;
    `order` and `starts` group devices by service for reduceat."""

    chip: Chip
    service_of: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    joined: NDArray[np.bool_]
    """Whether a device works together with others over the interconnect."""
    air: Floats
    gain: Floats
    resident: Floats
    """Power of the resident process, W; 0 on idle cards."""


@dataclass(slots=True)
class Boundary:
    """Running totals per service at the end of an inference window."""

    step: int
    served: Floats
    waited: Floats
    backlog: Floats
    utilization: Floats
    speed: Floats


@dataclass(slots=True)
class State:
    """Arrays over devices, and over services where said. Changed in place."""

    step: int
    backlog: Floats
    """Services: requests waiting."""
    service_load: Floats
    """Services + 1: smoothed share of capacity in use; the last stays 0 for idle cards."""
    served: Floats
    """Services: requests served since the beginning."""
    waited: Floats
    """Services: seconds that those requests waited, in total."""
    clock: Floats
    """Share of the highest core clock."""
    power: Floats
    natural: Floats
    """Core temperature that power and air make, °C."""
    excess: Floats
    """What a thermal fault adds, °C."""
    excess_goal: Floats
    temperature: Floats
    memory_temperature: Floats
    halved: NDArray[np.bool_]
    """Hardware slowdown is latched."""
    reasons: NDArray[np.int64]
    energy: Floats
    work: Floats
    """Integral of the load, s: byte counters follow from it."""
    link_work: Floats
    """The same, weighted by the interconnect's health."""
    throttled_thermal: Floats
    throttled_power: Floats
    windows: deque[Boundary] = field(default_factory=lambda: deque(maxlen=64))


def first_state(rig: Rig, load_ratio: Floats) -> State:
    """At step 0, settled under `load_ratio` (services,)."""
    services, devices = len(load_ratio), len(rig.service_of)
    load = np.append(load_ratio, 0.0)
    power = rig.chip.idle_watts + rig.resident + DYNAMIC_WATTS * rig.gain * load[rig.service_of]
    natural = rig.air + RESISTANCE_CELSIUS_PER_WATT * power

    def zeros(n: int = devices) -> Floats:
        return np.zeros(n)

    state = State(
        step=0,
        backlog=zeros(services),
        service_load=load,
        served=zeros(services),
        waited=zeros(services),
        clock=np.ones(devices),
        power=power,
        natural=natural,
        excess=zeros(),
        excess_goal=zeros(),
        temperature=natural.copy(),
        memory_temperature=natural + MEMORY_OFFSET_CELSIUS + MEMORY_LOAD_CELSIUS * load[rig.service_of],
        halved=np.zeros(devices, dtype=np.bool_),
        reasons=np.where(rig.resident > 0, 0, IDLE_BIT),
        energy=zeros(),
        work=zeros(),
        link_work=zeros(),
        throttled_thermal=zeros(),
        throttled_power=zeros(),
    )
    state.windows.append(Boundary(0, zeros(services), zeros(services), zeros(services), load_ratio.copy(), np.ones(services)))
    return state


def run(rig: Rig, state: State, drive: Drive, effects: Effects, until: int) -> None:
    """Advance `state` to step `until`, which lies in the block of `drive` and `effects` or at its end. Step n uses row n."""
    idle = rig.chip.idle_watts + rig.resident
    for step in range(state.step, until):
        n = step - drive.first_step
        base = idle if effects.ghost is None else idle + RESIDENT_WATTS * effects.ghost[n]
        link = None if effects.link is None else effects.link[n]
        speed = _serve(rig, state, drive.arrivals[n], drive.capacity[n], link)
        load = state.service_load[rig.service_of] * rig.gain
        dynamic = DYNAMIC_WATTS * load * (1 + LOAD_NOISE_RATIO * drive.noise[n])
        _set_clocks(rig, state, base, dynamic, effects, n)
        state.power = base + (dynamic if state.clock.min() >= 1.0 else dynamic * state.clock**POWER_EXPONENT)
        air = rig.air if effects.ambient is None else rig.air + effects.ambient[n]
        state.natural += CORE_GAIN * (air + RESISTANCE_CELSIUS_PER_WATT * state.power - state.natural)
        state.temperature = state.natural
        if effects.thermal is not None or state.excess.any():
            _overheat(rig, state, None if effects.thermal is None else effects.thermal[n], effects.overheat)
        state.memory_temperature += MEMORY_GAIN * (
            state.temperature + MEMORY_OFFSET_CELSIUS + MEMORY_LOAD_CELSIUS * load - state.memory_temperature
        )
        state.energy += state.power
        state.work += load
        state.link_work += load if link is None else load * link
        state.step = step + 1
        if state.step % WINDOW_SECONDS == 0:
            state.windows.append(
                Boundary(state.step, state.served.copy(), state.waited.copy(), state.backlog.copy(), state.service_load[:-1].copy(), speed)
            )


def _serve(rig: Rig, state: State, arrivals: Floats, capacity: Floats, link: Floats | None) -> Floats:
    """One second of every service's queue; returns the share of full speed (services,) at which its slowest card lets it run."""
    pace = 1 - (1 - MEMORY_BOUND_RATIO) * (1 - state.clock)
    if link is not None:
        pace = np.where(rig.joined, pace * (1 - LINK_BOUND_RATIO * (1 - link)), pace)
    speed: Floats = np.minimum.reduceat(pace[rig.order], rig.starts)
    able = capacity * speed
    demand = state.backlog + arrivals
    served = np.minimum(demand, able)
    up = able > 0
    used = np.divide(served, able, out=np.zeros_like(able), where=up)
    state.waited += served * np.divide(state.backlog, able, out=np.zeros_like(able), where=up)
    state.backlog = np.minimum(demand - served, QUEUE_SECONDS * able)
    state.served += served
    state.service_load[:-1] += LOAD_GAIN * (used - state.service_load[:-1])
    return speed


def _set_clocks(rig: Rig, state: State, base: Floats, dynamic: Floats, effects: Effects, n: int) -> None:
    """Clock, reasons and throttled time from last second's temperature and this second's demand for power."""
    chip = rig.chip
    limit: Floats | float = chip.power_limit_watts if effects.limit is None else chip.power_limit_watts * effects.limit[n]
    hot = state.temperature > chip.software_thermal_celsius
    over = base + dynamic > limit
    if effects.brake is None and effects.pace is None and not over.any() and not hot.any() and not state.halved.any():
        if state.clock.min() < 1.0:
            state.clock = np.ones_like(state.clock)
            state.reasons = np.where(rig.resident > 0, 0, IDLE_BIT)
        return
    clock = np.ones_like(dynamic)
    room = np.maximum(limit - base, 1.0)
    np.copyto(clock, (room / np.maximum(dynamic, 1.0)) ** (1 / POWER_EXPONENT), where=over)
    state.reasons = np.where(rig.resident > 0, 0, IDLE_BIT)
    state.reasons |= np.where(over, _POWER_CAP, 0)
    soft = np.clip(1 - SOFTWARE_SLOPE * (state.temperature - chip.software_thermal_celsius), 0.6, 1.0)
    np.minimum(clock, soft, out=clock, where=hot)
    state.halved = np.where(
        state.temperature >= chip.slowdown_celsius, True, state.halved & (state.temperature > chip.slowdown_celsius - HYSTERESIS_CELSIUS)
    )
    np.minimum(clock, 0.5, out=clock, where=state.halved)
    state.reasons |= np.where(hot, _SOFTWARE_THERMAL, 0) | np.where(state.halved, _HARDWARE_THERMAL, 0)
    braked = np.zeros(hot.shape, dtype=np.bool_) if effects.brake is None else effects.brake[n]
    np.minimum(clock, 0.5, out=clock, where=braked)
    state.reasons |= np.where(braked, _BRAKE, 0)
    if effects.pace is not None:
        # A slow card says nothing of it: no reason is set.
        clock = clock * effects.pace[n]
    state.clock = np.clip(clock, chip.sm_clock_idle_hertz / chip.sm_clock_max_hertz, 1.0)
    state.throttled_thermal += (hot | state.halved).astype(np.float64)
    state.throttled_power += (over | braked).astype(np.float64)


def _overheat(rig: Rig, state: State, progress: Floats | None, over: Floats | None) -> None:
    """A card is cooled worse and worse: its core drifts from where it was to `over` °C above slowdown, and comes back with a short lag."""
    on = np.zeros_like(state.excess, dtype=np.bool_) if progress is None else progress > 0
    begins = on & (state.excess_goal == 0)
    goal = rig.chip.slowdown_celsius + (0.0 if over is None else over) - state.natural
    state.excess_goal = np.where(begins, np.maximum(goal, 10.0), state.excess_goal)
    state.excess_goal = np.where(on, state.excess_goal, 0.0)
    falling = state.excess * np.exp(-1 / EXCESS_LAG_SECONDS)
    rising = state.excess_goal * (0.0 if progress is None else progress)
    state.excess = np.where(on, rising, np.where(falling < 0.05, 0.0, falling))
    state.temperature = np.minimum(state.natural + state.excess, rig.chip.shutdown_celsius - 1)
