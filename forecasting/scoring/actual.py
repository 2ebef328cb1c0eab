"""What happened: every series of one metric on a grid of steps, read from the store piece by piece and forgotten behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecasting.rates import per_minute
from forecasting.scoring.said import Who
from schemas.identity import device_entity, service_entity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecasting.targets import Target
    from schemas.store import Series, Store


class Actual:
    """`values` is (series, bins), NaN where nothing was said; column j is bin `first + j`, which spans [bin, bin + 1) * step.

    As in the forecaster, the newest value within a bin stands for it; of a service, that of its worst instance.
    """

    def __init__(self, store: Store, target: Target, step_ns: int) -> None:
        self._store = store
        self._target = target
        self.step_ns = step_ns
        self.first = 0
        self.rows: dict[Who, int] = {}
        self._raw: NDArray[np.float64] = np.empty((0, 0))
        self.values: NDArray[np.float64] = self._raw

    @property
    def end(self) -> int:
        """The bin after the last one that is known."""
        return int(self.first + self._raw.shape[1])

    def bin_of(self, at_ns: int) -> int:
        return int(at_ns // self.step_ns)

    def move(self, first: int, end: int) -> None:
        """Have bins [first, end): what lies before is forgotten, what is missing is read. Raises ConnectionError."""
        if not self._raw.shape[1] or first >= self.end:
            self.first, self._raw = first, np.empty((len(self.rows), 0))
        dropped = max(0, first - self.first)
        self._raw = self._raw[:, dropped:]
        self.first += dropped
        if end > self.end:
            self._read(self.end, end)
        if self._target.quantity == "per_minute":
            self.values = per_minute(self._raw, self.step_ns / 60e9, self._target.average_steps)
        else:
            self.values = self._raw

    def _read(self, start: int, end: int) -> None:
        measurement = "service" if self._target.of_service else "device"
        step = self.step_ns
        found = self._store.range(
            "service" if measurement == "service" else "device",
            [self._target.metric],
            # the last value of bin k is the last at or before the instant before bin k + 1
            start_ns=(start + 1) * step - 1,
            end_ns=(end + 1) * step - 1,
            step_ns=step,
            max_age_ns=step - 1,
        )
        fresh: dict[int, NDArray[np.float64]] = {}
        for series in found:
            who = self._who(series)
            row = self.rows.setdefault(who, len(self.rows))
            signed = self._target.sign * series.values
            fresh[row] = np.fmax(fresh[row], signed) if row in fresh else signed
        raw = np.full((len(self.rows), self._raw.shape[1] + end - start), np.nan)
        raw[: self._raw.shape[0], : self._raw.shape[1]] = self._raw
        for row, signed in fresh.items():
            raw[row, self._raw.shape[1] :] = self._target.sign * signed
        self._raw = raw

    def _who(self, series: Series) -> Who:
        tags = dict(series.tags)
        cluster = tags.get("cluster", "")
        if self._target.of_service:
            return Who(cluster, service_entity(cluster, tags.get("namespace", ""), tags.get("service", "")))
        return Who(cluster, device_entity(tags.get("uid", "")))
