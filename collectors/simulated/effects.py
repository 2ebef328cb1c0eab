"""What the faults do to the physics (per block of steps) and to memory, error counters and presence (at one step)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from collectors.simulated.growth import grown
from collectors.simulated.load import BLOCK
from collectors.simulated.physics import DRIFT_CELSIUS, OVERHEAT_CELSIUS
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from collectors.simulated.faults import ActiveFault, FaultName

    Shape = Callable[[ActiveFault, NDArray[np.float64]], NDArray[np.float64]]

COOLING_LOSS_CELSIUS: Final = 30.0
"""How much warmer the air gets in the end when a rack's cooling fails."""
COOLING_RECOVERY_SECONDS: Final = 60.0
POWER_CAP_RATIO: Final = 0.5
LEAK_FULL_AT_RATIO: Final = 0.95
"""A leak would reach the card's capacity at this part of its duration; it is held at LEAK_CEILING_RATIO until the service restarts."""
LEAK_CEILING_RATIO: Final = 0.995
ECC_UNCORRECTED_AT_RATIO: Final = 0.6
"""When in an ECC burst the uncorrectable error comes."""
SLOW_CLOCK_RATIO: Final = 0.8
"""Share of its clock that a slow card runs at."""
GROWTH_ERRORS_PER_SECOND: Final = 2.0
"""Rate of corrected errors that ECC growth has in the end; it grows in proportion to time."""
GROWTH_ROWS: Final = 8
"""Rows that are remapped meanwhile."""
REPLAYS_PER_SECOND: Final = 2.0
"""Four times what DCGM allows on Gen5 x16 (31 a minute, analytics reference §3.2)."""
LINKS_LOST_AT_ONCE: Final = 2
LINKS_LOST_IN_THE_END: Final = 6


@dataclass(frozen=True, slots=True)
class Effects:
    """Rows (BLOCK, devices) of one block, None where no fault of the kind acts in it.

    `ambient` °C added to the air; `thermal` progress 0–1 of a card's own overheating, `overheat` (devices,) the °C above slowdown that
    it leads to; `limit` factor of the power limit; `brake` whether the power brake is on; `link` factor of the interconnect's
    throughput; `pace` factor of the clock; `ghost` whether the card is kept awake by nobody.
    """

    ambient: NDArray[np.float64] | None = None
    thermal: NDArray[np.float64] | None = None
    limit: NDArray[np.float64] | None = None
    brake: NDArray[np.bool_] | None = None
    link: NDArray[np.float64] | None = None
    pace: NDArray[np.float64] | None = None
    ghost: NDArray[np.bool_] | None = None
    overheat: NDArray[np.float64] | None = None

    @property
    def act(self) -> bool:
        """Whether a fault acts in the block."""
        every = (self.ambient, self.thermal, self.limit, self.brake, self.link, self.pace, self.ghost)
        return any(rows is not None for rows in every)


NO_EFFECTS: Final = Effects()


def effects(faults: Sequence[ActiveFault], first: int, *, devices: int, links: int) -> Effects:
    """The block that begins at step `first`."""

    def of(name: FaultName, tail_seconds: int = 0) -> list[ActiveFault]:
        return [
            a
            for a in faults
            if a.fault.name == name and a.fault.start_seconds < first + BLOCK and a.fault.end_seconds + tail_seconds > first
        ]

    steps = np.arange(first, first + BLOCK, dtype=np.float64)
    cooling, drift = of("cooling_loss", 8 * int(COOLING_RECOVERY_SECONDS)), of("thermal_drift")
    thermal = [*of("thermal"), *drift]
    cap, brake, link, slow, ghost = of("power_cap"), of("power_brake"), of("nvlink_degradation"), of("slow_card"), of("ghost")
    return Effects(
        ambient=_spread(cooling, devices, steps, _warming) if cooling else None,
        thermal=_spread(thermal, devices, steps, _progress) if thermal else None,
        overheat=_overheat(thermal, devices) if thermal else None,
        limit=1 - (1 - POWER_CAP_RATIO) * _spread(cap, devices, steps, _on) if cap else None,
        brake=_spread(brake, devices, steps, _on) > 0 if brake else None,
        link=1 - _spread(link, devices, steps, lambda a, t: _link_loss(a, t, links)) if link else None,
        pace=1 - (1 - SLOW_CLOCK_RATIO) * _spread(slow, devices, steps, _on) if slow else None,
        ghost=_spread(ghost, devices, steps, _on) > 0 if ghost else None,
    )


def _spread(faults: Iterable[ActiveFault], devices: int, steps: NDArray[np.float64], shape: Shape) -> NDArray[np.float64]:
    rows = np.zeros((len(steps), devices))
    for active in faults:
        column = shape(active, steps)
        for card in active.cards:
            np.maximum(rows[:, card], column, out=rows[:, card])
    return rows


def _overheat(faults: Iterable[ActiveFault], devices: int) -> NDArray[np.float64]:
    """°C above slowdown in the end, of the worst fault of each card."""
    over = np.zeros(devices)
    for active in faults:
        cards = list(active.cards)
        over[cards] = np.maximum(over[cards], OVERHEAT_CELSIUS if active.fault.name == "thermal" else DRIFT_CELSIUS)
    return over


def _on(active: ActiveFault, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    on: NDArray[np.float64] = ((steps >= active.fault.start_seconds) & (steps < active.fault.end_seconds)).astype(np.float64)
    return on


def _progress(active: ActiveFault, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    fault = active.fault
    return _on(active, steps) * np.clip((steps - fault.start_seconds + 1) / fault.duration_seconds, 0.0, 1.0)


def _warming(active: ActiveFault, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    fault = active.fault
    constant = max(5.0, min(120.0, fault.duration_seconds / 4))
    elapsed = np.clip(steps - fault.start_seconds, 0.0, fault.duration_seconds)
    after = np.clip(steps - fault.end_seconds, 0.0, None)
    warming: NDArray[np.float64] = COOLING_LOSS_CELSIUS * -np.expm1(-elapsed / constant) * np.exp(-after / COOLING_RECOVERY_SECONDS)
    return warming


def _link_loss(active: ActiveFault, steps: NDArray[np.float64], links: int) -> NDArray[np.float64]:
    progress = _progress(active, steps)
    lost = np.where(progress > 0, LINKS_LOST_AT_ONCE + np.floor((LINKS_LOST_IN_THE_END - LINKS_LOST_AT_ONCE) * progress), 0.0)
    # What remains is slowed by retransmission as well.
    loss: NDArray[np.float64] = np.where(progress > 0, 1 - 0.8 * np.clip(1 - lost / max(links, 1), 0.0, 1.0), 0.0)
    return loss


@dataclass(frozen=True, slots=True)
class Marks:
    """At one step, per device: `leak_ratio` progress of a leak towards capacity (0 none), error counters since the scenario began,
    remapped rows, links down, the RecoveryAction it asks for, and whether the card is gone, its driver hangs, or it is busy for
    nobody."""

    leak_ratio: NDArray[np.float64]
    corrected: NDArray[np.int64]
    uncorrected: NDArray[np.int64]
    remapped: NDArray[np.int64]
    remap_pending: NDArray[np.bool_]
    links_down: NDArray[np.int64]
    link_errors: NDArray[np.int64]
    capped: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    hung: NDArray[np.bool_]
    remapped_correctable: NDArray[np.int64]
    replays: NDArray[np.int64]
    recovery: NDArray[np.int64]
    ghost: NDArray[np.bool_]


def marks(faults: Sequence[ActiveFault], step: int, *, devices: int, links: int, seed: int) -> Marks:
    """The marks at a step; a pure function, so that counters need no state."""

    def counts() -> NDArray[np.int64]:
        return np.zeros(devices, dtype=np.int64)

    def flags() -> NDArray[np.bool_]:
        return np.zeros(devices, dtype=np.bool_)

    found = Marks(
        leak_ratio=np.zeros(devices),
        corrected=counts(),
        uncorrected=counts(),
        remapped=counts(),
        remap_pending=flags(),
        links_down=counts(),
        link_errors=counts(),
        capped=flags(),
        lost=flags(),
        hung=flags(),
        remapped_correctable=counts(),
        replays=counts(),
        recovery=counts(),
        ghost=flags(),
    )
    for active in faults:
        fault, cards = active.fault, list(active.cards)
        elapsed = min(max(step - fault.start_seconds, 0), fault.duration_seconds)
        if step < fault.start_seconds or not cards:
            continue
        on = step < fault.end_seconds
        match fault.name:
            case "memory_leak":
                if on:
                    found.leak_ratio[cards] = np.maximum(found.leak_ratio[cards], elapsed / (LEAK_FULL_AT_RATIO * fault.duration_seconds))
            case "ecc_burst":
                found.corrected[cards] += 5 * elapsed + 200 * elapsed**2 // fault.duration_seconds
                if elapsed >= ecc_uncorrected_step(active) - fault.start_seconds:
                    found.uncorrected[cards] += 1
                    # The row is replaced by the reset that ends the fault.
                    found.remap_pending[cards] |= on
                    found.remapped[cards] += not on
            case "nvlink_degradation":
                found.link_errors[cards] += 120 * elapsed
                if on:
                    progress = min(1.0, (elapsed + 1) / fault.duration_seconds)
                    down = LINKS_LOST_AT_ONCE + int((LINKS_LOST_IN_THE_END - LINKS_LOST_AT_ONCE) * progress)
                    found.links_down[cards] = np.maximum(found.links_down[cards], min(down, links))
            case "power_cap":
                found.capped[cards] |= on
            case "device_lost":
                found.lost[cards] |= on
            case "driver_hang":
                found.hung[cards] |= on
            case "ecc_growth":
                most = GROWTH_ERRORS_PER_SECOND * fault.duration_seconds / 2
                for card in cards:
                    found.corrected[card] += grown(elapsed, fault.duration_seconds, most, power=2, seed=(seed, card, fault.start_seconds))
                found.remapped_correctable[cards] += GROWTH_ROWS * elapsed // fault.duration_seconds
            case "pcie_replays":
                most = REPLAYS_PER_SECOND * fault.duration_seconds
                for card in cards:
                    found.replays[card] += grown(elapsed, fault.duration_seconds, most, power=1, seed=(seed, card, fault.start_seconds))
            case "recovery_pending":
                found.recovery[cards] = np.maximum(found.recovery[cards], v1.RecoveryAction.RECOVERY_ACTION_RESET_DEVICE if on else 0)
            case "ghost":
                found.ghost[cards] |= on
            case "thermal" | "thermal_drift" | "cooling_loss" | "power_brake" | "slow_card":
                pass
    return found


def ecc_uncorrected_step(active: ActiveFault) -> int:
    """Step at which an ECC burst's uncorrectable error occurs."""
    return active.fault.start_seconds + int(ECC_UNCORRECTED_AT_RATIO * active.fault.duration_seconds)
