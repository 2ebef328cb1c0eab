"""How near forecasts came: scaled error, coverage of the 90 % interval and pinball loss, in sums that do not grow with their number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

QUANTILES: Final = (0.05, 0.5, 0.95)
LEAST_KNOWN: Final = 0.5
"""A forecast is judged where at least this share of its steps is known afterwards."""

_DIGITS: Final = 1e-6
"""Stores keep seven digits of a forecast: what differs by less is equal, or a series that stands still would lie outside its interval."""

_LOWEST: Final = 1e-4
_BINS: Final = 1000
_GROWTH: Final = 1e10 ** (1 / _BINS)
"""Scaled errors from 0.0001 to a million fall into so many bins; the median is known to 2.4 %."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Of n forecasts over h steps. `inside` and `absolute` are (n, h), NaN where nothing is known; the others (n,).

    `mase` is the mean absolute error over `scale`, the mean change from one step to the next before the forecast; NaN where the series
    did not move. `naive` is the same of a forecast that says: it stays as it is.
    """

    inside: NDArray[np.float64]
    absolute: NDArray[np.float64]
    pinball: NDArray[np.float64]
    scale: NDArray[np.float64]
    mase: NDArray[np.float64]
    naive: NDArray[np.float64]
    judged: NDArray[np.bool_]


def errors(bands: NDArray[np.float64], current: NDArray[np.float64], actual: NDArray[np.float64], before: NDArray[np.float64]) -> Errors:
    """`bands` (3, n, h) are p05, p50, p95; `current` (n,) the last value that went in; `actual` (n, h) and `before` (n, b) hold NaN."""
    known = np.isfinite(actual)
    counts = known.sum(axis=1)
    judged = counts >= max(1, LEAST_KNOWN * actual.shape[1])
    held = np.where(known & judged[:, None], actual, np.nan)
    p05, p50, p95 = bands
    off_by = [np.where(np.abs(held - band) > _DIGITS * np.abs(band), held - band, 0.0 * held) for band in (p05, p50, p95)]
    inside = np.where(np.isfinite(held), np.where((off_by[0] < 0) | (off_by[2] > 0), 0.0, 1.0), np.nan)
    absolute = np.abs(off_by[1])
    losses = [np.where(off >= 0, q * off, (q - 1) * off) for q, off in zip(QUANTILES, off_by, strict=True)]
    scale = _mean(np.abs(np.diff(before, axis=1)))
    scale = np.where(scale > 0, scale, np.nan)
    return Errors(
        inside=inside,
        absolute=absolute,
        pinball=_mean(np.mean(losses, axis=0)),
        scale=scale,
        mase=_mean(absolute) / scale,
        naive=_mean(np.abs(held - current[:, None])) / scale,
        judged=judged,
    )


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row means of what is known; NaN, without a warning, where nothing is."""
    known = np.isfinite(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


@dataclass(slots=True)
class Lead:
    """One distance ahead: how many values, how many of them inside the interval, and the sum of scaled errors."""

    judged: int = 0
    inside: int = 0
    scaled: int = 0
    scaled_sum: float = 0.0


@dataclass(slots=True)
class Accuracy:
    """Sums over forecasts. `unscaled`: judged, but of a series that did not move before, so that no scaled error exists."""

    forecasts: int = 0
    unscaled: int = 0
    pinball_sum: float = 0.0
    mase_sum: float = 0.0
    naive_sum: float = 0.0
    leads: dict[int, Lead] = field(default_factory=dict)
    _histogram: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS + 1, dtype=np.int64))

    def add(self, found: Errors, leads_ns: Sequence[int]) -> None:
        """`leads_ns` (h,): how far ahead of the last value each step is."""
        judged = found.judged
        self.forecasts += int(judged.sum())
        self.pinball_sum += float(np.nansum(found.pinball[judged]))
        scaled = judged & np.isfinite(found.mase)
        self.unscaled += int((judged & ~scaled).sum())
        self.mase_sum += float(found.mase[scaled].sum())
        self.naive_sum += float(found.naive[scaled].sum())
        at = np.clip(np.log(np.maximum(found.mase[scaled], _LOWEST) / _LOWEST) / np.log(_GROWTH), 0, _BINS)
        np.add.at(self._histogram, at.astype(np.int64), 1)
        inside = np.isfinite(found.inside)
        ratio = np.where(scaled[:, None], found.absolute / found.scale[:, None], np.nan)
        for step, lead_ns in enumerate(leads_ns):
            lead = self.leads.setdefault(lead_ns, Lead())
            lead.judged += int(inside[:, step].sum())
            lead.inside += int(np.nansum(found.inside[:, step]))
            lead.scaled += int(np.isfinite(ratio[:, step]).sum())
            lead.scaled_sum += float(np.nansum(ratio[:, step]))

    def merge(self, other: Accuracy) -> None:
        """Take another's sums in."""
        self.forecasts += other.forecasts
        self.unscaled += other.unscaled
        self.pinball_sum += other.pinball_sum
        self.mase_sum += other.mase_sum
        self.naive_sum += other.naive_sum
        self._histogram = self._histogram + other._histogram
        for lead_ns, theirs in other.leads.items():
            lead = self.leads.setdefault(lead_ns, Lead())
            lead.judged += theirs.judged
            lead.inside += theirs.inside
            lead.scaled += theirs.scaled
            lead.scaled_sum += theirs.scaled_sum

    @property
    def scaled(self) -> int:
        return self.forecasts - self.unscaled

    @property
    def mase(self) -> float | None:
        """Mean over forecasts."""
        return self.mase_sum / self.scaled if self.scaled else None

    @property
    def mase_median(self) -> float | None:
        """Median over forecasts, to 2.4 %."""
        if not self.scaled:
            return None
        at = int(np.searchsorted(np.cumsum(self._histogram), (self.scaled + 1) / 2))
        return float(_LOWEST * _GROWTH ** (at + 0.5)) if at else 0.0

    @property
    def to_naive(self) -> float | None:
        """Mean scaled error over that of "it stays as it is"; below 1 the forecasts were worth making."""
        return self.mase_sum / self.naive_sum if self.naive_sum > 0 else None

    @property
    def coverage(self) -> float | None:
        """Share of values inside the 90 % interval."""
        judged = sum(lead.judged for lead in self.leads.values())
        return sum(lead.inside for lead in self.leads.values()) / judged if judged else None

    @property
    def pinball(self) -> float | None:
        """Mean over the 5 %, 50 % and 95 % quantiles, in the metric's unit."""
        return self.pinball_sum / self.forecasts if self.forecasts else None
