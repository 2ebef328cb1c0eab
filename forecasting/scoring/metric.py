"""The score of one metric: its forecasts, piece by piece, against what happened after each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.scoring.accuracy import Accuracy, Errors, errors
from forecasting.scoring.breaches import Breaches
from forecasting.scoring.crossings import LOOK_BACK, crossings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from forecasting.scoring.actual import Actual
    from forecasting.scoring.breaches import Episode
    from forecasting.scoring.said import Said, Who
    from forecasting.targets import Target

BEFORE_STEPS: Final = 60
"""So many steps before a forecast give the scale of its errors."""

PROBABILITY_BINS: Final = 10
_SHOWN_BEFORE: Final = 40
_LEAST_MOVED: Final = 5.0


@dataclass(frozen=True, slots=True)
class Example:
    """One forecast with what came; `before` and `actual` hold NaN where nothing was said."""

    said: Said
    before: NDArray[np.float64]
    actual: NDArray[np.float64]
    mase: float


@dataclass(slots=True)
class Calibration:
    """How often what was said with a probability came true: counts and hits of each tenth."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(PROBABILITY_BINS, dtype=np.int64))
    hits: NDArray[np.int64] = field(default_factory=lambda: np.zeros(PROBABILITY_BINS, dtype=np.int64))
    square_sum: float = 0.0

    def add(self, probability: float, *, crossed: bool) -> None:
        tenth = min(PROBABILITY_BINS - 1, int(probability * PROBABILITY_BINS))
        self.counts[tenth] += 1
        self.hits[tenth] += crossed
        self.square_sum += (probability - crossed) ** 2

    @property
    def brier(self) -> float | None:
        """Mean squared distance of probability and outcome; 0 is perfect, 0.25 is a coin."""
        total = int(self.counts.sum())
        return self.square_sum / total if total else None


class MetricScore:
    """Takes a stretch of time after the other. `models` are accuracies by model, `breaches` what became of breach forecasts."""

    def __init__(self, target: Target, *, standing_from: float, stepped_in: Callable[[Episode, int], bool]) -> None:
        self.target = target
        self.unit = target.unit
        self.models: dict[str, Accuracy] = {}
        self.breaches = Breaches(standing_from, stepped_in)
        self.calibration = Calibration()
        self.said = 0
        self.unknown = 0
        self.best: Example | None = None
        self.worst: Example | None = None
        self._limits: dict[Who, float] = {}

    @property
    def total(self) -> Accuracy:
        """Over all models."""
        found = Accuracy()
        for accuracy in self.models.values():
            found.merge(accuracy)
        return found

    def compare(self, made: Sequence[Said], actual: Actual) -> None:
        """Forecasts of one step (that of `actual`), all of whose horizons have passed, with what happened."""
        by_shape: dict[tuple[str, int], list[Said]] = {}
        for said in made:
            self.said += 1
            if not said.complete or said.who not in actual.rows:
                self.unknown += 1
                continue
            by_shape.setdefault((said.model, said.horizon), []).append(said)
        for (model, horizon), those in by_shape.items():
            self._compare(model, horizon, those, actual)

    def follow(self, said: Sequence[Said], actual: Actual | None, since: int, until: int) -> None:
        """Breach forecasts and crossings of bins [since, until), in the order of time."""
        for one in said:
            if one.limit is not None:
                self._limits[one.who] = one.limit
        events: list[tuple[int, int, Said | tuple[Who, int, bool]]] = [(one.made_at_ns, 0, one) for one in said]
        if actual is not None:
            whos = sorted(actual.rows, key=lambda who: actual.rows[who])
            limits = np.array([self._limit(who) for who in whos], dtype=np.float64)
            found = crossings(actual.values, limits, self.target.sign, first=actual.first, step_ns=actual.step_ns, since=since, until=until)
            events += [(one.at_ns, 1, (whos[one.row], one.at_ns, one.sudden)) for one in found]
        for _, _, event in sorted(events, key=lambda event: event[:2]):
            if isinstance(event, tuple):
                self.breaches.crossed(event[0], event[1], sudden=event[2])
            else:
                self.breaches.take(event)

    def _limit(self, who: Who) -> float:
        """As the newest forecast says; one that is the same for every device is known without."""
        constant = self.target.limit_value if not self.target.limit_metric else None
        return self._limits.get(who, float("nan") if constant is None else constant)

    def _compare(self, model: str, horizon: int, those: Sequence[Said], actual: Actual) -> None:
        rows = np.array([actual.rows[said.who] for said in those])
        last = np.array([actual.bin_of(said.until_ns) - actual.first for said in those])
        # nothing before the first bin and after the last is known
        padded = np.pad(actual.values, ((0, 0), (BEFORE_STEPS, horizon)), constant_values=np.nan)
        at = last[:, None] + BEFORE_STEPS
        columns = np.arange(1, horizon + 1)
        back = np.arange(-BEFORE_STEPS + 1, 1)
        width = padded.shape[1] - 1
        after = padded[rows[:, None], np.clip(at + columns, 0, width)]
        before = padded[rows[:, None], np.clip(at + back, 0, width)]
        bands = np.array([[said.p05 for said in those], [said.p50 for said in those], [said.p95 for said in those]])
        current = np.array([said.p50[0] if said.current is None else said.current for said in those])
        found = errors(bands, current, after, before)
        self.unknown += int((~found.judged).sum())
        self.models.setdefault(model, Accuracy()).add(found, [step * actual.step_ns for step in range(1, horizon + 1)])
        self._calibrate(those, after)
        self._examples(those, found, after, before)

    def _calibrate(self, those: Sequence[Said], after: NDArray[np.float64]) -> None:
        sign = self.target.sign
        for said, came in zip(those, after, strict=True):
            if said.probability is None or said.limit is None:
                continue
            known = came[np.isfinite(came)]
            crossed = bool((sign * known >= sign * said.limit).any())
            if crossed or known.size > came.size / 2:
                self.calibration.add(said.probability, crossed=crossed)

    def _examples(self, those: Sequence[Said], found: Errors, after: NDArray[np.float64], before: NDArray[np.float64]) -> None:
        """Keep the nearest and the furthest of what had something to foresee."""
        with np.errstate(invalid="ignore"):
            moved = np.nanmax(np.where(np.isfinite(after), after, -np.inf), axis=1) - np.nanmin(
                np.where(np.isfinite(after), after, np.inf), axis=1
            )
        moved_enough = np.where(moved >= _LEAST_MOVED * found.scale, found.mase, np.nan)
        if np.isfinite(moved_enough).any():
            nearest = int(np.nanargmin(moved_enough))
            if self.best is None or found.mase[nearest] < self.best.mase:
                self.best = _example(nearest, those, found, after, before)
        if np.isfinite(found.mase).any():
            furthest = int(np.nanargmax(found.mase))
            if self.worst is None or found.mase[furthest] > self.worst.mase:
                self.worst = _example(furthest, those, found, after, before)


def _example(index: int, those: Sequence[Said], found: Errors, after: NDArray[np.float64], before: NDArray[np.float64]) -> Example:
    return Example(those[index], before[index, -_SHOWN_BEFORE:].copy(), after[index].copy(), float(found.mase[index]))


LOOK_BACK_STEPS: Final = max(BEFORE_STEPS, LOOK_BACK) + 1
"""How far back of a stretch of time what happened must be known."""
