"""The forecaster's score of the last hours while it runs: a sample of what it said, compared with its own history later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.scoring.accuracy import errors

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from numpy.typing import NDArray

    from forecasting.predict import Prediction

MOST: Final = 5_000
"""Forecasts that wait for their end, of one length of step: at 30 steps 1 KB each. More are not judged; the report judges all."""

_ROLLING: Final = 500
"""About so many forecasts of a metric are remembered, the older the less."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    until_ns: int
    bands: NDArray[np.float64]  # (3, h)
    current: float
    before: NDArray[np.float64]  # (b,)


@dataclass(slots=True)
class Quality:
    """Of one metric: forecasts judged in all, and lately the share of values inside the 90 % interval and the mean scaled error."""

    judged: int = 0
    coverage: float | None = None
    mase: float | None = None
    _inside: float = 0.0
    _known: float = 0.0
    _scaled_sum: float = 0.0
    _scaled: float = 0.0

    def add(self, inside: int, known: int, mase: float) -> None:
        """One forecast; `mase` is NaN where the series did not move before it."""
        keep = 1 - 1 / _ROLLING
        self.judged += 1
        self._inside, self._known = keep * self._inside + inside, keep * self._known + known
        self.coverage = self._inside / self._known
        if np.isfinite(mase):
            self._scaled_sum, self._scaled = keep * self._scaled_sum + mase, keep * self._scaled + 1
            self.mase = self._scaled_sum / self._scaled


class Live:
    """One forecast per series waits at a time. `quality` is by metric."""

    def __init__(self, step_ns: int, quality: dict[str, Quality]) -> None:
        self._step_ns = step_ns
        self._quality = quality
        self._waiting: dict[str, dict[Hashable, _Waiting]] = {}

    def said(self, metric: str, key: Hashable, until_ns: int, found: Prediction, before: NDArray[np.float64]) -> None:
        """A forecast that goes out; `before` (b,) are the values that it rests on."""
        waiting = self._waiting.setdefault(metric, {})
        if key not in waiting and sum(map(len, self._waiting.values())) < MOST:
            waiting[key] = _Waiting(until_ns, np.array([found.p05, found.p50, found.p95]), found.current, before)

    def due(self, metric: str, at_ns: int) -> list[Hashable]:
        """Series whose forecast has come to its end."""
        waiting = self._waiting.get(metric)
        if not waiting:
            return []
        return [key for key, one in waiting.items() if at_ns >= one.until_ns + (one.bands.shape[1] + 2) * self._step_ns]

    def judge(
        self, metric: str, rows: Mapping[Hashable, int], until_ns: NDArray[np.int64], values: NDArray[np.float64], at_ns: int
    ) -> None:
        """Compare what is due with `values` (n, w), whose last column is the step of `until_ns` (n,); `rows` finds a series in them."""
        for key in self.due(metric, at_ns):
            one = self._waiting[metric].pop(key)
            row = rows.get(key)
            if row is None:
                continue
            ahead = int(until_ns[row]) // self._step_ns - one.until_ns // self._step_ns
            start = values.shape[1] - ahead
            columns = np.arange(start, start + one.bands.shape[1])
            exists = (columns >= 0) & (columns < values.shape[1])
            actual = np.where(exists, values[row, np.clip(columns, 0, values.shape[1] - 1)], np.nan)
            found = errors(one.bands[:, None, :], np.array([one.current]), actual[None, :], one.before[None, :])
            if found.judged[0]:
                inside = found.inside[0][np.isfinite(found.inside[0])]
                self._quality.setdefault(metric, Quality()).add(int(inside.sum()), inside.size, float(found.mase[0]))
