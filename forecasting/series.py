"""History of every followed series on one grid of steps: rings of numpy rows, fed from samples, seeded from the store."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from schemas.catalogue import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from schemas.telemetry import v1

_LIMIT_INTERVALS: Final = 90
"""Limits travel in full samples, each 60th; one is believed for this many intervals, or its max_age, whichever is longer."""


@dataclass(slots=True)
class Device:
    """One device's rows: `row` .. `row + targets - 1`. `limits[name] = (value, until_ns)`."""

    cluster: str
    node: str
    uid: str
    row: int
    simulated: bool = False
    limits: dict[str, tuple[float, int]] = field(default_factory=dict)

    def limit(self, name: str, at_ns: int) -> float | None:
        """A constant of the device as of `at_ns`; None where it is not known, or was not said for too long."""
        found = self.limits.get(name)
        return found[0] if found is not None and at_ns <= found[1] else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`values` is (n, history), NaN where nothing is known, oldest first; `until_ns` (n,) when its last value was taken, 0 where
    there never was one; `current` (n,) the newest value of all."""

    values: NDArray[np.float64]
    until_ns: NDArray[np.int64]
    current: NDArray[np.float64]


@dataclass(slots=True)
class _Source:
    epoch: int
    sequence: int
    taken_at_ns: int


class History:
    """Bounded: `history_steps` per series, `max_series` in all. A step without a value is NaN, never zero. Counts what it drops."""

    def __init__(
        self, metrics: Sequence[str], constants: Iterable[str], *, step_ns: int, history_steps: int, max_series: int, dropped: Counter[str]
    ) -> None:
        self._metrics = tuple(metrics)
        self._constants = tuple(sorted(set(constants)))
        self._step_ns = step_ns
        self._width = history_steps
        self._most_devices = max_series // len(self._metrics)
        self._dropped = dropped
        self._nodes: dict[tuple[str, str], dict[str, Device]] = {}
        self._sources: dict[tuple[str, str, str], _Source] = {}
        self._free: list[int] = []
        self._rows = 0
        self._values = np.full((0, history_steps), np.nan)
        self._newest = np.full(0, -1, dtype=np.int64)
        self._at_ns = np.zeros(0, dtype=np.int64)  # when the value of the newest step was taken
        self._before_ns = np.zeros(0, dtype=np.int64)  # and that of the step with a value before it

    def __len__(self) -> int:
        """Devices followed."""
        return sum(len(devices) for devices in self._nodes.values())

    def devices(self) -> Iterable[Device]:
        for devices in self._nodes.values():
            yield from devices.values()

    def device(self, cluster: str, node: str, uid: str) -> Device | None:
        return self._nodes.get((cluster, node), {}).get(uid)

    def take(self, batch: v1.SampleBatch) -> None:
        """Append what a batch says. Replays change nothing; a clock set back starts the node's series afresh."""
        at_ns = batch.taken_at_ns
        reset = self._went_back(batch)
        devices = self._nodes.setdefault((batch.cluster, batch.node), {})
        metrics = self._metrics
        rows: list[int] = []
        values: list[float] = []
        for sample in batch.devices:
            uid = sample.uid
            device = devices.get(uid)
            if device is None:
                device = self._add(batch.cluster, batch.node, uid, simulated=batch.simulated)
                if device is None:
                    self._dropped["max_series"] += 1
                    continue
            elif reset:
                self._clear(device)
            row = device.row
            for metric in metrics:
                if sample.HasField(metric):
                    rows.append(row)
                    values.append(getattr(sample, metric))
                row += 1
            if sample.full:  # the only samples that carry constants
                device.simulated = batch.simulated
                self._take_constants(device, sample, at_ns, batch.interval_ns)
        if rows:
            self._put_all(np.array(rows), at_ns, np.array(values, dtype=np.float64))

    def _take_constants(self, device: Device, sample: v1.DeviceSample, at_ns: int, interval_ns: int) -> None:
        for name in self._constants:
            if sample.HasField(name):
                age_ns = max(BY_NAME[name].max_age_ns, _LIMIT_INTERVALS * interval_ns)
                device.limits[name] = (getattr(sample, name), at_ns + age_ns)

    def seed(self, cluster: str, node: str, uid: str, metric: str, times_ns: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Fill the steps of a metric that are not known yet with what the store has; `times_ns` ascending, NaN where it knows nothing."""
        finite = np.isfinite(values)
        device = self._found(cluster, node, uid) if finite.any() else None
        if device is None:
            return
        row = device.row + self._metrics.index(metric)
        for at_ns, value in zip(times_ns[finite].tolist(), values[finite].tolist(), strict=True):
            self._put(row, at_ns, value, seeding=True)

    def seed_constant(self, cluster: str, node: str, uid: str, name: str, value: float, said_ns: int) -> None:
        """A limit that the store remembers; one that a sample said later is kept."""
        device = self._found(cluster, node, uid)
        until_ns = said_ns + BY_NAME[name].max_age_ns
        if device is not None and until_ns > device.limits.get(name, (0.0, 0))[1]:
            device.limits[name] = (value, until_ns)

    def _found(self, cluster: str, node: str, uid: str) -> Device | None:
        device = self.device(cluster, node, uid) or self._add(cluster, node, uid)
        if device is None:
            self._dropped["max_series"] += 1
        return device

    def snapshot(self, devices: Sequence[Device], target: int, at_ns: int) -> Snapshot:
        """The rows of one target, each ending at its newest whole step."""
        rows = np.fromiter((device.row + target for device in devices), dtype=np.int64, count=len(devices))
        newest = self._newest[rows]
        current = np.where(newest >= 0, self._values[rows, newest % self._width], np.nan)
        # The newest step is not over: its value stands for less than a step. It serves where the one before has nothing.
        whole = np.isfinite(self._values[rows, (newest - 1) % self._width]) & ((newest + 1) * self._step_ns > at_ns)
        until_ns = np.where(whole, self._before_ns[rows], self._at_ns[rows])
        end = np.where(whole, newest - 1, newest)
        columns = (end[:, None] - np.arange(self._width - 1, -1, -1)) % self._width
        values = self._values[rows[:, None], columns]
        values[whole, 0] = np.nan  # the ring's oldest place holds the newest step already
        return Snapshot(values, until_ns, current)

    def age(self, at_ns: int) -> None:
        """Forget devices that said nothing for a whole history."""
        oldest = at_ns // self._step_ns - self._width
        for devices in self._nodes.values():
            for uid, device in list(devices.items()):
                newest = int(self._newest[device.row : device.row + len(self._metrics)].max())
                if newest < oldest and all(until_ns < at_ns for _, until_ns in device.limits.values()):
                    self._remove(devices, uid)

    def forget(self, keep: Callable[[str, str], bool]) -> None:
        """Drop the nodes for which `keep(cluster, node)` is false."""
        for place in [place for place in self._nodes if not keep(*place)]:
            devices = self._nodes[place]
            for uid in list(devices):
                self._remove(devices, uid)
            del self._nodes[place]
        self._sources = {key: source for key, source in self._sources.items() if key[:2] in self._nodes}

    def _went_back(self, batch: v1.SampleBatch) -> bool:
        """Whether the node's clock was set back: later by sequence or epoch, earlier by time. An old batch sent late is not that."""
        key = (batch.cluster, batch.node, batch.source)
        seen = self._sources.get(key)
        if seen is None:
            self._sources[key] = _Source(batch.agent_epoch, batch.sequence, batch.taken_at_ns)
            return False
        later = (batch.agent_epoch, batch.sequence) > (seen.epoch, seen.sequence)
        if not later:
            return False
        back = batch.taken_at_ns < seen.taken_at_ns - self._step_ns
        seen.epoch, seen.sequence, seen.taken_at_ns = batch.agent_epoch, batch.sequence, batch.taken_at_ns
        if back:
            self._dropped["clock_set_back"] += 1
        return back

    def _put_all(self, rows: NDArray[np.int64], at_ns: int, values: NDArray[np.float64]) -> None:
        """One value for each of `rows`. The newest of a step stands for it; an older step is only filled, never changed."""
        step = at_ns // self._step_ns
        ahead = step - self._newest[rows]
        if (ahead == 1).all():
            self._before_ns[rows] = self._at_ns[rows]
        elif (ahead != 0).any():
            for row, value in zip(rows.tolist(), values.tolist(), strict=True):
                self._put(row, at_ns, value)
            return
        self._values[rows, step % self._width] = values
        self._newest[rows] = step
        self._at_ns[rows] = at_ns

    def _put(self, row: int, at_ns: int, value: float, *, seeding: bool = False) -> None:
        newest = int(self._newest[row])
        step = at_ns // self._step_ns
        column = step % self._width
        if step > newest:
            if newest >= 0:
                missed = np.arange(max(newest + 1, step - self._width + 1), step)
                self._values[row, missed % self._width] = np.nan
            self._newest[row] = step
            self._before_ns[row], self._at_ns[row] = self._at_ns[row], at_ns
            self._values[row, column] = value
        elif step <= newest - self._width:
            if not seeding:
                self._dropped["too_old"] += 1
        elif step == newest:
            if not seeding:
                self._values[row, column], self._at_ns[row] = value, max(at_ns, int(self._at_ns[row]))
        elif np.isnan(self._values[row, column]):
            self._values[row, column] = value
            if step == newest - 1:
                self._before_ns[row] = at_ns

    def _add(self, cluster: str, node: str, uid: str, *, simulated: bool = False) -> Device | None:
        if self._free:
            row = self._free.pop()
        elif self._rows // len(self._metrics) >= self._most_devices:
            return None
        else:
            row = self._rows
            self._rows += len(self._metrics)
            if self._rows > len(self._values):
                more = max(32, len(self._metrics), len(self._values))
                self._values = np.concatenate((self._values, np.full((more, self._width), np.nan)))
                self._newest = np.concatenate((self._newest, np.full(more, -1, dtype=np.int64)))
                self._at_ns = np.concatenate((self._at_ns, np.zeros(more, dtype=np.int64)))
                self._before_ns = np.concatenate((self._before_ns, np.zeros(more, dtype=np.int64)))
        device = Device(cluster, node, uid, row, simulated)
        self._nodes.setdefault((cluster, node), {})[uid] = device
        return device

    def _clear(self, device: Device) -> None:
        end = device.row + len(self._metrics)
        self._values[device.row : end] = np.nan
        self._newest[device.row : end] = -1
        self._at_ns[device.row : end] = self._before_ns[device.row : end] = 0

    def _remove(self, devices: dict[str, Device], uid: str) -> None:
        device = devices.pop(uid)
        self._clear(device)
        self._free.append(device.row)
