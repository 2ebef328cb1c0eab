"""History of every followed device: its metrics on the grid, its limits, its counters; fed from samples, seeded from the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.followed import Followed, Histories
from forecasting.rates import Total
from schemas.catalogue import BY_NAME
from schemas.identity import device_entity

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from forecasting.targets import Target
    from schemas.telemetry import v1

_LIMIT_INTERVALS: Final = 90
"""Limits travel in full samples, each 60th; one is believed for this many intervals, or its max_age, whichever is longer."""

SHAPE: Final = ("memory_total_bytes", "partitioning_enabled")
"""Where one of these changes, the device has been cut up, put together or resized: what it says from then on is another series."""


@dataclass(slots=True)
class _Source:
    epoch: int
    sequence: int
    taken_at_ns: int


class History(Histories):
    """The device targets among what is followed."""

    def __init__(self, targets: Sequence[Target], *, step_ns: int, history_steps: int, max_series: int, dropped: Counter[str]) -> None:
        super().__init__(targets, step_ns=step_ns, history_steps=history_steps, max_series=max_series, dropped=dropped)
        self._metrics = tuple((i, t.metric, t.quantity == "per_minute") for i, t in enumerate(self.targets))
        asked = {name for t in self.targets for name in (t.limit_metric, t.ceiling_metric, t.unless_metric) if name}
        self.constants: tuple[str, ...] = tuple(sorted(asked | set(SHAPE)))
        self._all_slow = all(BY_NAME[target.metric].cadence == "slow" for target in self.targets)
        self._sources: dict[tuple[str, str, str], _Source] = {}
        self._totals: dict[int, Total] = {}

    def device(self, cluster: str, node: str, uid: str) -> Followed | None:
        return self.find(cluster, node, device_entity(uid))

    def devices(self) -> Iterable[Followed]:
        return self.everybody()

    def take(self, batch: v1.SampleBatch) -> None:
        """Append what a batch says. Replays change nothing; a clock set back starts the node's series afresh."""
        at_ns = batch.taken_at_ns
        reset = self._went_back(batch)
        rows: list[int] = []
        values: list[float] = []
        devices = self._nodes.setdefault((batch.cluster, batch.node), {})
        for sample in batch.devices:
            if self._all_slow and not sample.full and not reset:
                continue  # slow fields travel in full samples only
            uid = sample.uid
            device = devices.get(device_entity(uid))
            if device is None:
                device = self._found(batch.cluster, batch.node, device_entity(uid), uid, simulated=batch.simulated)
                if device is None:
                    continue
            elif reset:
                self._clear(device)
            if sample.full:  # the only samples that carry constants
                device.simulated = batch.simulated
                self._take_constants(device, sample, at_ns, batch.interval_ns)
            for index, metric, is_rate in self._metrics:
                if sample.HasField(metric):
                    row = device.row + index
                    value: float | None = float(getattr(sample, metric))
                    if is_rate:
                        value = self._counted(row, at_ns, float(getattr(sample, metric)), f"{batch.boot_id}/{batch.driver_epoch}")
                    if value is not None:
                        rows.append(row)
                        values.append(value)
        self._put(rows, at_ns, values)

    def seed(self, one: Followed, target: int, times_ns: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Also of a counter: what the store has is its past, so that it goes on from there."""
        if self.targets[target].quantity == "per_minute":
            values = self._seeded_totals(one.row + target, times_ns, values)
        super().seed(one, target, times_ns, values)

    def seed_device(self, cluster: str, node: str, uid: str) -> Followed | None:
        """The device of that uid; None (counted) where there is no room for it."""
        return self._found(cluster, node, device_entity(uid), uid)

    def seed_constant(self, device: Followed, name: str, value: float, said_ns: int) -> None:
        """A limit that the store remembers; one that a sample said later is kept."""
        until_ns = said_ns + BY_NAME[name].max_age_ns
        if until_ns > device.limits.get(name, (0.0, 0))[1]:
            device.limits[name] = (value, until_ns)

    def forget(self, keep: Callable[[str, str], bool]) -> None:
        super().forget(keep)
        self._sources = {key: source for key, source in self._sources.items() if key[:2] in self._nodes}

    def _take_constants(self, device: Followed, sample: v1.DeviceSample, at_ns: int, interval_ns: int) -> None:
        changed = False
        for name in self.constants:
            if sample.HasField(name):
                value = float(getattr(sample, name))
                before = device.limits.get(name)
                changed |= name in SHAPE and before is not None and before[0] != value
                age_ns = max(BY_NAME[name].max_age_ns, _LIMIT_INTERVALS * interval_ns)
                device.limits[name] = (value, at_ns + age_ns)
        if changed:
            self._dropped["reshaped"] += 1
            device.shape += 1
            self._clear(device)

    def _counted(self, row: int, at_ns: int, raw: float, epoch: str) -> float | None:
        """Total growth since the counter is followed; None for a reading that is no news."""
        known = self._totals.get(row)
        if known is None:
            self._totals[row] = Total(raw, epoch, at_ns)
            return 0.0
        return known.take(raw, epoch, at_ns)

    def _seeded_totals(self, row: int, times_ns: NDArray[np.int64], raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Totals that fit those counted since the first sample, or, where there was none yet, that end at 0."""
        finite = np.flatnonzero(np.isfinite(raw))
        if not finite.size:
            return raw
        newest, newest_ns = float(raw[finite[-1]]), int(times_ns[finite[-1]])
        known = self._totals.setdefault(row, Total(newest, "", newest_ns))
        fell = np.flatnonzero(np.diff(raw[finite]) < 0) + 1
        resets = np.zeros(raw.size)
        resets[finite[fell]] = raw[finite[fell - 1]]
        totals = raw + np.cumsum(resets)
        first = known.raw - known.total  # what the counter showed when it was read here first
        out: NDArray[np.float64] = totals - totals[finite[-1]] + newest - first
        return out

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

    def _clear(self, one: Followed) -> None:
        super()._clear(one)
        self._drop_totals(one)

    def _remove(self, those: dict[str, Followed], entity: str) -> None:
        self._drop_totals(those[entity])
        super()._remove(those, entity)

    def _drop_totals(self, one: Followed) -> None:
        for row in range(one.row, one.row + len(self.targets)):
            self._totals.pop(row, None)
