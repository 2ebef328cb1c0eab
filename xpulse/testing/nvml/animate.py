"""Moves the numbers of a fake's state as time passes: jobs come and go; power, heat, memory and counters follow; the same for each seed."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from xpulse.testing.nvml.state import Process, State

STEP_SECONDS: Final = 1.0
IDLE_POWER_RATIO: Final = 0.14
"""Of the limit: what data-centre cards draw when nothing runs (67 of 500 W in the A100 capture)."""
COOLING_SECONDS: Final = 20.0
"""Time in which a card's temperature comes two thirds of the way to where its power leads."""
DEGREES_PER_LIMIT: Final = 45.0
"""How much warmer a card is at its power limit than when it draws nothing."""
IDLE_MEGAHERTZ: Final = 345
_IDLE_REASON, _POWER_CAP_REASON = 0x1, 0x4
_LOADED_GPM: Final = {1: 98.0, 2: 95.0, 3: 58.0, 4: 6.0, 5: 41.0, 7: 41.0, 10: 34.0, 11: 0.5, 12: 20.0, 13: 38.0}
"""Percent at full load, by GPM metric number; what a card does not have is left alone."""
_BYTES_PER_SECOND: Final = {"197": 3.1e9, "198": 6.3e9, "202:each": 1.2e9, "204:each": 1.2e9}
_KIBIBYTES_PER_SECOND: Final = {"138": 9.0e6, "139": 9.1e6, "140": 10.8e6, "141": 10.9e6}


@dataclass(frozen=True, slots=True)
class Job:
    """What one card runs for a while: how hard (0 to 1), and the share of the free memory it takes."""

    number: int
    load: float
    memory_ratio: float


def job_of(seed: int, device: int, at_seconds: float) -> Job | None:
    """The job of a card at a time since the start; None between two."""
    pace = random.Random(f"{seed}/{device}")
    period_seconds = pace.uniform(70, 150)
    number, into = divmod(at_seconds + pace.uniform(0, period_seconds), period_seconds)
    job = random.Random(f"{seed}/{device}/{number}")
    if into > period_seconds * job.uniform(0.75, 0.9):
        return None
    level, memory_ratio = job.uniform(0.55, 0.97), job.uniform(0.3, 0.85)
    ripple = 0.06 * math.sin(at_seconds / 3.1 + device) + 0.03 * math.sin(at_seconds / 1.3 + number)
    rising = min(1.0, into / 5)
    return Job(int(number), max(0.05, min(1.0, (level + ripple) * rising)), memory_ratio)


@dataclass(slots=True)
class _Card:
    """What the board said at first, and what has grown since."""

    index: int
    limit_milliwatts: float
    ambient_celsius: float
    heat_limit_celsius: float
    celsius: float
    grown: dict[str, float] = field(default_factory=dict)


class Animation:
    """Steps a State. The times given to `step` rise; the same times and seed write the same files."""

    def __init__(self, state: State, seed: int = 7) -> None:
        self.state, self._seed = state, seed
        self._at_seconds = 0.0
        self._cards = [self._first(index) for index in range(len(state.data["devices"]))]

    def step(self, at_seconds: float) -> None:
        """Move everything to this time since the start."""
        passed = max(0.0, at_seconds - self._at_seconds)
        self._at_seconds = at_seconds
        with self.state.changing():
            for card in self._cards:
                self._move(card, job_of(self._seed, card.index, at_seconds), passed)

    def _first(self, index: int) -> _Card:
        celsius = self._number(index, "temperature_celsius") or 40.0
        limit = self._number(index, "power_limit_milliwatts") or 60_000.0  # a board that tells no limit, as GB10 does
        power = self._number(index, "power_milliwatts") or 0.0
        margin = self._number(index, "margin_celsius") or 30.0
        return _Card(index, limit, celsius - DEGREES_PER_LIMIT * power / limit, celsius + margin, celsius)

    def _number(self, index: int, name: str, group: str | None = None) -> float | None:
        """What the card says, where that is a number: what it does not support stays so."""
        found = self.state.value(index, name, group)
        return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None

    def _move(self, card: _Card, job: Job | None, passed_seconds: float) -> None:
        load = job.load if job else 0.0
        milliwatts = min(card.limit_milliwatts, card.limit_milliwatts * (IDLE_POWER_RATIO + (1 - IDLE_POWER_RATIO) * load))
        capped = milliwatts > 0.97 * card.limit_milliwatts
        goal = card.ambient_celsius + DEGREES_PER_LIMIT * milliwatts / card.limit_milliwatts
        card.celsius += (goal - card.celsius) * (1 - math.exp(-passed_seconds / COOLING_SECONDS))
        total, reserved = self._number(card.index, "memory_total_bytes"), self._number(card.index, "memory_reserved_bytes") or 0.0
        of_job = int(((total or 2**34) - reserved) * job.memory_ratio) if job else 0
        self._set(
            card,
            utilization_percent=100 * load,
            memory_utilization_percent=45 * load,
            memory_used_bytes=of_job + 50 * 2**20,
            bar1_used_bytes=of_job + 2**20,
            power_milliwatts=milliwatts,
            temperature_celsius=card.celsius,
            margin_celsius=card.heat_limit_celsius - card.celsius,
            energy_millijoules=self._grow(card, "energy_millijoules", None, milliwatts * passed_seconds),
            violation_power_nanoseconds=self._grow(card, "violation_power_nanoseconds", None, 1e9 * passed_seconds * capped),
            pcie_tx_kilobytes_per_second=3.1e6 * load,
            pcie_rx_kilobytes_per_second=6.3e6 * load,
            **{f"{kind}_clock_megahertz": self._clock(card, kind, load) for kind in ("sm", "graphics")},
        )
        device = self.state.device(card.index)
        device.set(clock_reasons=_IDLE_REASON if job is None else _POWER_CAP_REASON if capped else 0)
        self._fields(card, milliwatts, load, passed_seconds, capped=capped)
        self._profiling(card, load)
        device.set(processes=self._processes(card, job, of_job))

    def _set(self, card: _Card, **values: float) -> None:
        known = {name: int(value) for name, value in values.items() if self._number(card.index, name) is not None}
        self.state.device(card.index).set(**known)

    def _clock(self, card: _Card, kind: str, load: float) -> float:
        most = self._number(card.index, f"{kind}_clock_max_megahertz") or 0.0
        return most * (1 - 0.04 * load) if load > 0.02 else IDLE_MEGAHERTZ

    def _grow(self, card: _Card, name: str, group: str | None, by: float) -> float:
        """A counter's new value; fractions are kept until they are a whole."""
        now = self._number(card.index, name, group) or 0.0
        exact = card.grown.get(f"{group}/{name}", now)
        if int(exact) != int(now):  # somebody set or reset it meanwhile
            exact = now
        card.grown[f"{group}/{name}"] = exact + by
        return exact + by

    def _fields(self, card: _Card, milliwatts: float, load: float, passed_seconds: float, *, capped: bool) -> None:
        wanted = {
            "82": card.celsius - 3,
            "83": self._grow(card, "83", "fields", milliwatts * passed_seconds),
            "74": self._grow(card, "74", "fields", 1e9 * passed_seconds * capped),
            "185": milliwatts,
            "186": milliwatts,
        }
        for name, per_second in (_BYTES_PER_SECOND | _KIBIBYTES_PER_SECOND).items():
            wanted[name] = self._grow(card, name, "fields", per_second * load * passed_seconds)
        known = {name: int(value) for name, value in wanted.items() if self._number(card.index, name, "fields") is not None}
        self.state.device(card.index).put("fields", **known)

    def _profiling(self, card: _Card, load: float) -> None:
        device = self.state.device(card.index)
        if self.state.value(card.index, "gpm_supported"):
            device.put("gpm", **_gpm(load))
        for instance in self.state.instances(card.index):
            if "gpm" in instance:
                instance["gpm"] = _gpm(load) | {name: value for name, value in instance["gpm"].items() if int(name) not in _LOADED_GPM}

    def _processes(self, card: _Card, job: Job | None, memory_bytes: int) -> list[Process]:
        """One of the job; in MIG mode it is in the first instance, and nothing tells how busy it is."""
        if job is None:
            return []
        pid = 20_000 + 997 * card.index + job.number % 900
        one: Process = {"pid": pid, "name": "/usr/bin/python3", "memory_bytes": memory_bytes}
        instances = self.state.instances(card.index)
        if instances:
            return [
                one
                | {
                    "memory_bytes": int(instances[0]["memory_total_bytes"] * job.memory_ratio),
                    "gi": instances[0]["gi"],
                    "ci": instances[0]["ci"],
                }
            ]
        return [one | {"sm_percent": int(97 * job.load), "memory_percent": int(44 * job.load)}]


def _gpm(load: float) -> dict[str, Any]:
    return {str(number): round(value * load, 2) for number, value in _LOADED_GPM.items()}


@contextmanager
def animated(state: State, seed: int = 7) -> Iterator[None]:
    """Move a state once a second, beside whatever the caller does, until the block ends."""
    animation, ending = Animation(state, seed), threading.Event()
    began = time.monotonic()

    def go_on() -> None:
        while not ending.wait(STEP_SECONDS):
            animation.step(time.monotonic() - began)

    thread = threading.Thread(target=go_on, name="fake NVML", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
