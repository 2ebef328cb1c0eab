"""One series in, one prediction out: the backtest's best model that passes the checks, naive where none does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from forecasting.backtest import Score, backtest
from forecasting.eta import Crossing, crossing
from forecasting.interval import band
from forecasting.models import MENU, NAIVE, Unfit
from forecasting.validate import flaw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecasting.models import Model
    from forecasting.models.model import Kind


@dataclass(frozen=True, slots=True)
class Job:
    """A clean series, shape (n,), oldest first. `assess` runs the menu and asks for the crossing of `limit`; without it naive is enough.

    `sign` is 1 where the limit is above, -1 where it is below (a margin that shrinks). A "counter" is cumulative, without resets in it.
    """

    y: NDArray[np.float64]
    assess: bool
    seed: int
    limit: float | None = None
    low: float | None = None
    high: float | None = None
    kind: Kind = "gauge"
    sign: int = 1

    def mirrored(self) -> Job:
        """The same question upside down: what falls towards a limit rises towards it here."""
        return replace(
            self,
            y=-self.y,
            limit=None if self.limit is None else -self.limit,
            low=None if self.high is None else -self.high,
            high=None if self.low is None else -self.low,
            sign=-self.sign,
        )


@dataclass(frozen=True, slots=True)
class Prediction:
    """What goes into a Forecast. Arrays have shape (horizon,). `crossing` is None where it was not asked for.

    `fallbacks` says why better models were passed over.
    """

    model: str
    mase: float | None
    points: int
    current: float
    p05: NDArray[np.float64]
    p50: NDArray[np.float64]
    p95: NDArray[np.float64]
    crossing: Crossing | None
    fallbacks: tuple[str, ...] = ()

    def mirrored(self) -> Prediction:
        """Upside down; when a limit is crossed, and how likely, stays as it is."""
        return replace(self, current=-self.current, p05=-self.p95, p50=-self.p50, p95=-self.p05)


class Unpredictable(Exception):
    """Not even naive can say anything of this series."""


def predict(job: Job, *, horizon: int, paths: int, menu: Sequence[Model] = MENU) -> Prediction:
    """Raises Unpredictable; never returns anything that is not finite, ordered and within bounds."""
    if job.sign < 0:
        return predict(job.mirrored(), horizon=horizon, paths=paths, menu=menu).mirrored()
    fallbacks: list[str] = []
    try:
        ranked = backtest(job.y, horizon, menu) if job.assess else []
        if NAIVE.name not in {score.model.name for score in ranked}:
            ranked.append(Score(NAIVE, NAIVE.fit(job.y), float("nan")))
    except Unfit as error:
        raise Unpredictable(str(error)) from None
    for score in ranked:
        try:
            found = _with(job, score, horizon, paths, tuple(fallbacks))
        except Unfit as error:
            fallbacks.append(str(error))
            continue
        if reason := flaw(found, horizon, job):
            fallbacks.append(f"{score.model.name}: {reason}")
            continue
        return found
    raise Unpredictable("; ".join(fallbacks))


def _with(job: Job, score: Score, horizon: int, paths: int, fallbacks: tuple[str, ...]) -> Prediction:
    futures = score.fitted.simulate(horizon, paths, np.random.default_rng(job.seed))
    if not np.isfinite(futures).all():
        raise Unfit(f"{score.model.name}: simulated futures are not finite")
    p05, p50, p95 = band(futures, job.low, job.high)
    last = float(job.y[-1])
    return Prediction(
        model=score.model.name,
        mase=score.mase if np.isfinite(score.mase) else None,
        points=job.y.size,
        current=last,
        p05=p05,
        p50=p50,
        p95=p95,
        crossing=crossing(futures, last, job.limit) if job.assess and job.limit is not None else None,
        fallbacks=fallbacks,
    )
