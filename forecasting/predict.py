"""Series in, predictions out: for each the backtest's best model that passes the checks, with a band its past errors vouch for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.backtest import backtest
from forecasting.eta import Crossing, crossing
from forecasting.interval import LEVEL, margins
from forecasting.models import MENU, gather
from forecasting.validate import flaw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecasting.backtest import Backtest
    from forecasting.models import Batch, Fitted, Kind, Model

_STEEPEST: Final = 1.5
"""A mean goes no further than so many times the line that would cross the whole range of the series in its whole length."""

CONSTANT: Final = "constant"


@dataclass(frozen=True, slots=True)
class Job:
    """A clean series, shape (n,), oldest first. `assess` asks for the crossing of `limit` too.

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

    `mase` is the model's error in the backtest, over that of naive one step ahead; None where nothing could be compared. `level` is
    the coverage that the past errors prove for the band p05 to p95: less than 0.9 where there are too few. `fallbacks` says why better
    models were passed over, `notes` what else there is to know ("constant", "band proven to 80 %").
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
    level: float = LEVEL
    notes: tuple[str, ...] = ()

    def mirrored(self) -> Prediction:
        """Upside down; when a limit is crossed, and how likely, stays as it is."""
        return replace(self, current=-self.current, p05=-self.p95, p50=-self.p50, p95=-self.p05)


class Unpredictable(Exception):
    """Not even naive can say anything of this series."""


def predict(job: Job, *, horizon: int, paths: int, menu: Sequence[Model] = MENU) -> Prediction:
    """One series. Raises Unpredictable; never returns anything that is not finite, ordered and within bounds."""
    found = predict_all([job], horizon=horizon, paths=paths, menu=menu)[0]
    if isinstance(found, str):
        raise Unpredictable(found)
    return found


def predict_all(jobs: Sequence[Job], *, horizon: int, paths: int, menu: Sequence[Model] = MENU) -> list[Prediction | str]:
    """For each job a prediction, or why there is none. Many at once cost a fraction of what one by one would."""
    found: list[Prediction | str] = ["no finite point"] * len(jobs)
    upright = [job if job.sign > 0 else job.mirrored() for job in jobs]
    for kind in ("gauge", "counter"):
        which = [i for i, job in enumerate(upright) if job.kind == kind and job.y.size and np.isfinite(job.y).all()]
        if not which:
            continue
        batch = gather([upright[i].y for i in which])
        tested = backtest(batch, horizon, menu, kind)
        for place, prediction in zip(which, _best([upright[i] for i in which], batch, tested, horizon, paths), strict=True):
            turned = jobs[place].sign < 0 and not isinstance(prediction, str)
            found[place] = prediction.mirrored() if turned and not isinstance(prediction, str) else prediction
    return found


def _best(jobs: Sequence[Job], batch: Batch, tested: Backtest, horizon: int, paths: int) -> list[Prediction | str]:
    """The best model of each row that passes; rows whose model did not are tried again with their next."""
    found: list[Prediction | str] = [""] * len(jobs)
    why = [tuple(f"{tested.models[m].name}: not finite" for m in np.nonzero(row)[0].tolist()) for row in tested.broken]
    open_rows = np.arange(len(jobs))
    for rank in range(len(tested.models)):
        model_of = tested.order[open_rows, rank]
        failed: list[int] = []
        for number in np.unique(model_of).tolist():
            rows = open_rows[model_of == number]
            for row, result in zip(rows.tolist(), _of_model(jobs, batch, tested, number, rows, horizon, paths), strict=True):
                if isinstance(result, str):
                    why[row] = (*why[row], f"{tested.models[number].name}: {result}")
                    failed.append(row)
                else:
                    found[row] = replace(result, fallbacks=why[row])
        if not failed:
            return found
        open_rows = np.array(sorted(failed))
    for row in open_rows.tolist():
        found[row] = "; ".join(why[row])
    return found


def _of_model(
    jobs: Sequence[Job], batch: Batch, tested: Backtest, number: int, rows: NDArray[np.int64], horizon: int, paths: int
) -> list[Prediction | str]:
    model, fitted = tested.models[number], tested.fitted[number]
    span = 1.0 + _STEEPEST * horizon / batch.length[rows]
    lowest, highest = batch.z[rows].min(axis=1), batch.z[rows].max(axis=1)
    mean = np.clip(fitted.mean[rows], (highest - span)[:, None], (lowest + span)[:, None])
    wide = margins(fitted.tested[rows], fitted.spread[rows], tested.trial.of(rows))
    out: list[Prediction | str] = []
    for place, row in enumerate(rows.tolist()):
        if tested.broken[row, number] or not fitted.fits[row] or batch.length[row] < model.minimum_points:
            out.append("too few points")
            continue
        job = jobs[row]
        margin = (np.zeros(horizon), np.zeros(horizon)) if batch.constant[row] else (wide.below[place], wide.above[place])
        futures = _futures(job, fitted, row, mean[place], margin, paths) if job.assess or job.kind == "counter" else None
        if futures is not None and not np.isfinite(futures).all():
            out.append("simulated futures are not finite")
            continue
        z = np.stack((mean[place] + margin[0], mean[place], mean[place] + margin[1]))
        if futures is not None and job.kind == "counter":
            z = np.quantile(futures, (0.05, 0.5, 0.95), axis=0)
        scale, last = float(batch.scale[row]), float(batch.last[row])
        band = z * scale + last
        p05, p50, p95 = band if job.low is None and job.high is None else np.clip(band, job.low, job.high)
        crossed = None
        if futures is not None and job.assess and job.limit is not None:
            crossed = crossing(futures * scale + last, last, job.limit)
        mase, level = float(tested.mase[row, number]), float(wide.level[place])
        notes = (CONSTANT,) if batch.constant[row] else () if level >= LEVEL else (f"band proven to {level:.0%}",)
        prediction = Prediction(
            model=model.name,
            mase=mase if np.isfinite(mase) else None,
            points=job.y.size,
            current=last,
            p05=p05,
            p50=p50,
            p95=p95,
            crossing=crossed,
            level=level,
            notes=notes,
        )
        out.append(flaw(prediction, horizon, job) or prediction)
    return out


def _futures(
    job: Job, fitted: Fitted, row: int, mean: NDArray[np.float64], margin: tuple[NDArray[np.float64], NDArray[np.float64]], paths: int
) -> NDArray[np.float64]:
    """Simulated futures, (paths, horizon), spread such that their band is the one that is shown. Counts are left as they were drawn."""
    found = fitted.simulate(row, paths, np.random.default_rng(job.seed))
    if job.kind == "counter" or not np.isfinite(found).all():
        return found
    low, middle, high = np.quantile(found, (0.05, 0.5, 0.95), axis=0)
    below = np.where(middle > low, -margin[0] / np.maximum(middle - low, 1e-12), 1.0)
    above = np.where(high > middle, margin[1] / np.maximum(high - middle, 1e-12), 1.0)
    off = found - middle
    out: NDArray[np.float64] = mean + off * np.where(off < 0, below, above)
    return out
