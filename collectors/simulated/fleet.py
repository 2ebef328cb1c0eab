"""The simulated fleet: places, services, faults and physics composed into one model of scenario time, with no clock inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from collectors.simulated.calm import is_calm, run_calm
from collectors.simulated.effects import POWER_CAP_RATIO, Marks, effects, marks
from collectors.simulated.faults import FAULT_NAMES, parse_fault, resolve
from collectors.simulated.layout import lay_out
from collectors.simulated.load import BLOCK, Load
from collectors.simulated.memory import Memory
from collectors.simulated.physics import AIR_CELSIUS, IDLE_BIT, RESIDENT_WATTS, SLOT_GRADIENT_CELSIUS, Rig, first_state, run
from collectors.simulated.services import place
from collectors.simulated.timeline import Timeline
from schemas.identity import NodeRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from collectors.simulated.effects import Effects
    from collectors.simulated.faults import FaultName
    from collectors.simulated.layout import Layout
    from collectors.simulated.load import Drive
    from collectors.simulated.services import Service
    from collectors.simulated.settings import Chip, Simulated

SECOND_NS: Final = 1_000_000_000

LINK_BYTES_PER_SECOND: Final = 26_562e6
"""One NVLink of an H100, as NVIDIA's health validation expects it."""
LINK_SHARE: Final = 0.22
"""Of it, what tensor-parallel inference at full load uses; an assumption."""
PCIE_TX_BYTES_PER_SECOND: Final = 0.4e9
PCIE_RX_BYTES_PER_SECOND: Final = 1.6e9
"""At full load: requests and weights come in, answers go out; an assumption."""
SM_ACTIVE: Final = 0.82
TENSOR_ACTIVE: Final = 0.36
DRAM_ACTIVE: Final = 0.58
"""Per unit of load: decoding is bound by memory bandwidth, so DRAM is busier than the tensor cores; an assumption."""


@dataclass(frozen=True, slots=True)
class View:
    """The fleet at `step`. `columns[field]` (devices,) in the catalogue's units, for every field of the catalogue that the model has."""

    step: int
    columns: dict[str, NDArray[np.generic]]
    lost: NDArray[np.bool_]
    hung: NDArray[np.bool_]


class Fleet:
    """`advance` moves scenario time on, `view` tells what the cards would say then.

    All is a pure function of (settings, clusters, started_at_ns, time): one long advance equals many short ones bit for bit, so a
    restarted agent goes on where the scenario is. An hour of 16 cards takes about 0.1 s.
    Raises ValueError where a fault names a card, node or rack that does not exist.
    """

    def __init__(self, settings: Simulated, *, clusters: Sequence[str], started_at_ns: int) -> None:
        self.settings = settings
        self.started_at_ns = started_at_ns
        self.layout: Layout = lay_out(settings, clusters, started_at_ns)
        self.services: tuple[Service, ...] = place(self.layout, settings.seed)
        self.services_on: dict[NodeRef, list[Service]] = {node.ref: [] for node in self.layout.nodes}
        for service in self.services:
            self.services_on[NodeRef(service.cluster, service.node)].append(service)
        self.faults = resolve(
            [parse_fault(text) for text in settings.faults],
            self.layout,
            choices=_choices(self.services, len(self.layout.devices)),
            free=_free(self.services, len(self.layout.devices)),
            seed=settings.seed,
        )
        self.timeline = Timeline(self.services, self.faults, seed=settings.seed, warm=settings.warm)
        self._load = Load(
            self.services,
            self.timeline,
            self.faults,
            devices=len(self.layout.devices),
            seed=settings.seed,
            period_seconds=settings.diurnal_period_seconds,
            trough_ratio=settings.trough_ratio,
        )
        self._rig = _rig(settings, self.layout, self.services)
        expected = self._load.expected_ratio(0) if settings.warm else np.zeros(len(self.services))
        self.state = first_state(self._rig, expected)
        rng = np.random.default_rng([settings.seed, 51])
        devices = len(self.layout.devices)
        self._energy_before = rng.uniform(1e8, 4e9, devices)
        self._bytes_before = rng.integers(10**12, 10**14, (4, devices))
        self._corrected_before = rng.integers(0, 12, devices)
        self.fast = True
        """Take the short way through calm stretches; the result is the same (tests compare)."""
        self._block: tuple[int, Drive, Effects] | None = None
        self._memory = Memory(self.services, self.timeline, settings, devices)
        self._constant = _constants(settings.chip, devices)

    def step_at(self, at_ns: int) -> int:
        """The last whole second of the scenario at that time; 0 before it began."""
        return max(0, (at_ns - self.started_at_ns) // SECOND_NS)

    def time_ns(self, step: int) -> int:
        """Time of a step, never negative: a service that was warm at a scenario starting near 1970 still has a start."""
        return max(1, self.started_at_ns + step * SECOND_NS)

    def advance(self, to_ns: int) -> int:
        """Go on to that time (never back) and return the step reached."""
        goal = self.step_at(to_ns)
        while self.state.step < goal:
            number = self.state.step // BLOCK
            if self._block is None or self._block[0] != number:
                acting = effects(self.faults, number * BLOCK, devices=len(self.layout.devices), links=self.settings.chip.links)
                self._block = (number, self._load.block(number), acting)
            _, drive, acting = self._block
            until = min(goal, (number + 1) * BLOCK)
            if self.fast and is_calm(self._rig, self.state, drive, acting):
                run_calm(self._rig, self.state, drive, until)
            else:
                run(self._rig, self.state, drive, acting, until)
        return self.state.step

    def expected_load(self, step: int) -> NDArray[np.float64]:
        """(devices,) share of its capacity that each card is asked for at a step, without noise; 0 on a card without a service."""
        return np.append(self._load.expected_ratio(step), 0.0)[self._rig.service_of]

    def view(self) -> View:
        """What the cards say at the step reached."""
        state, chip, rig = self.state, self.settings.chip, self._rig
        devices = len(self.layout.devices)
        mark: Marks = marks(self.faults, state.step, devices=devices, links=chip.links, seed=self.settings.seed)
        load = np.clip(state.service_load[rig.service_of] * rig.gain, 0.0, 1.0)
        busy = (rig.resident > 0) | mark.ghost
        clock = np.where(busy, np.round(state.clock * chip.sm_clock_max_hertz / 15e6) * 15e6, chip.sm_clock_idle_hertz)
        link_rate = np.where(rig.joined, chip.links * LINK_BYTES_PER_SECOND * LINK_SHARE, 0.0)
        tx, rx, link_tx, link_rx = self._bytes_before
        used = self._memory.used(state.step, mark.leak_ratio)
        columns: dict[str, NDArray[np.generic]] = {
            **self._constant,
            # A ghost says that it is busy, and does nothing.
            "utilization_ratio": np.where(mark.ghost, 1.0, load),
            "memory_used_bytes": used,
            "power_watts": state.power.copy(),
            "temperature_celsius": state.temperature.copy(),
            "sm_clock_hertz": clock,
            "energy_joules": self._energy_before + state.energy,
            "pcie_tx_bytes": tx + (PCIE_TX_BYTES_PER_SECOND * state.work).astype(np.int64),
            "pcie_rx_bytes": rx + (PCIE_RX_BYTES_PER_SECOND * state.work).astype(np.int64),
            "interconnect_tx_bytes": link_tx + (link_rate * state.link_work).astype(np.int64),
            "interconnect_rx_bytes": link_rx + (link_rate * state.link_work).astype(np.int64),
            "sm_active_ratio": SM_ACTIVE * load,
            "tensor_active_ratio": TENSOR_ACTIVE * load,
            "dram_active_ratio": DRAM_ACTIVE * load,
            "memory_temperature_celsius": state.memory_temperature.copy(),
            "throttle_reasons": np.where(mark.ghost, state.reasons & ~IDLE_BIT, state.reasons),
            "throttled_thermal_seconds": state.throttled_thermal.copy(),
            "throttled_power_seconds": state.throttled_power.copy(),
            # Boards of this form have no fan of their own: this is the chassis fan before the card.
            "fan_ratio": np.clip(0.3 + 0.7 * (state.temperature - 40.0) / 45.0, 0.3, 1.0),
            "power_limit_watts": np.where(mark.capped, POWER_CAP_RATIO, 1.0) * chip.power_limit_watts,
            "pcie_replays": mark.replays,
            "ecc_corrected_volatile_errors": mark.corrected,
            "ecc_uncorrected_volatile_errors": mark.uncorrected,
            "ecc_corrected_aggregate_errors": self._corrected_before + mark.corrected,
            "ecc_uncorrected_aggregate_errors": mark.uncorrected,
            "remapped_rows_correctable": mark.remapped_correctable,
            "remapped_rows_uncorrectable": mark.remapped,
            "remapped_rows_pending": mark.remap_pending,
            "interconnect_errors": mark.link_errors,
            "interconnect_links_active": chip.links - mark.links_down,
            "recovery_action": mark.recovery,
        }
        return View(state.step, columns, mark.lost, mark.hung)


def _constants(chip: Chip, devices: int) -> dict[str, NDArray[np.generic]]:
    """Columns that never change; each is shared by all views and written by none."""

    def every(value: float) -> NDArray[np.generic]:
        return np.full(devices, value)

    zero = np.zeros(devices, dtype=np.int64)
    found: dict[str, NDArray[np.generic]] = {
        "memory_clock_hertz": every(chip.memory_clock_hertz),
        "performance_state": zero,
        "memory_total_bytes": every(chip.memory_bytes),
        "memory_reserved_bytes": every(chip.reserved_bytes),
        "sm_clock_max_hertz": every(chip.sm_clock_max_hertz),
        "memory_clock_max_hertz": every(chip.memory_clock_hertz),
        "pcie_link_generation": every(5),
        "pcie_link_generation_max": every(5),
        "pcie_link_width": every(16),
        "pcie_link_width_max": every(16),
        "remapped_rows_failed": np.zeros(devices, dtype=np.bool_),
        "temperature_slowdown_celsius": every(chip.slowdown_celsius),
        "temperature_shutdown_celsius": every(chip.shutdown_celsius),
    }
    for column in found.values():
        column.flags.writeable = False
    return found


def _rig(settings: Simulated, layout: Layout, services: Sequence[Service]) -> Rig:
    devices = len(layout.devices)
    rng = np.random.default_rng([settings.seed, 52])
    service_of = np.full(devices, len(services), dtype=np.int64)
    joined = np.zeros(devices, dtype=np.bool_)
    for service in services:
        service_of[list(service.cards)] = service.number
        joined[list(service.cards)] = len(service.cards) > 1
    slot = np.array([d.index for d in layout.devices]) / max(1, settings.devices_per_node - 1)
    return Rig(
        chip=settings.chip,
        service_of=service_of,
        order=np.array([card for s in services for card in s.cards], dtype=np.int64),
        starts=np.cumsum([0, *(len(s.cards) for s in services)])[:-1],
        joined=joined,
        air=AIR_CELSIUS + SLOT_GRADIENT_CELSIUS * slot + rng.uniform(-1.0, 1.0, devices),
        gain=rng.uniform(0.95, 1.0, devices),
        resident=np.where(service_of < len(services), RESIDENT_WATTS, 0.0),
    )


def _free(services: Sequence[Service], devices: int) -> list[int]:
    """Cards without a service."""
    used = {card for service in services for card in service.cards}
    return [card for card in range(devices) if card not in used]


def _choices(services: Sequence[Service], devices: int) -> dict[FaultName, Sequence[int]]:
    """Cards that a fault without scope may fall on: busy ones that hold a pre-allocating service, alone where one does; a ghost haunts
    a free one."""
    steady = [s for s in services if s.memory == "preallocate"]
    alone = [s.cards[0] for s in steady if len(s.cards) == 1]
    joined = [card for s in steady if len(s.cards) > 1 for card in s.cards]
    choices: dict[FaultName, Sequence[int]] = dict.fromkeys(FAULT_NAMES, alone)
    # Only cards that work together use the interconnect.
    choices["nvlink_degradation"] = joined or alone
    choices["ghost"] = _free(services, devices)
    return choices
