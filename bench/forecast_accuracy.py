"""How far forecasts are off and how often the band holds: ours as shipped, naive, predict_linear and AutoETS on the same windows."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bench.forecast_hindsight import least_errors
from forecasting.pool import Chunk, predict_chunk
from forecasting.predict import Job, Prediction
from forecasting.screening import Question, screen
from forecasting.settings import Forecasting

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bench.forecast_corpus import Windows

LINEAR_POINTS: Final = 144
"""What analytics.md §2.1 gives predict_linear: the last 144 points."""

_SMALLEST: Final = 1e-3
"""Scaled errors below count as this in geometric means: a perfect forecast of a flat line is not infinitely better."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Scaled errors (MASE) of each window by method, NaN where the past never moved (no scale); "hindsight" is no method but a bound.
    `inside` (n, horizon) whether our band held what came; `said` (n,) whether anything was forecast."""

    windows: Windows
    mase: dict[str, NDArray[np.float64]]
    inside: NDArray[np.bool_]
    said: NDArray[np.bool_]
    models: Counter[str]
    seconds: float
    level: NDArray[np.float64]


def linear(past: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
    """Prometheus' predict_linear over the last LINEAR_POINTS, for each of the next steps."""
    recent = past[:, -LINEAR_POINTS:]
    at = np.arange(LINEAR_POINTS) - (LINEAR_POINTS - 1) / 2
    slope = recent @ at / (at @ at)
    out: NDArray[np.float64] = recent.mean(axis=1)[:, None] + slope[:, None] * (
        np.arange(LINEAR_POINTS, LINEAR_POINTS + horizon) - (LINEAR_POINTS - 1) / 2
    )
    return out


class Said(NamedTuple):
    """What is said of each window, None where nothing is; the CPU seconds it took; and what the models were shown: of the windows at
    `rows` the clean series."""

    predictions: list[Prediction | None]
    seconds: float
    rows: list[int]
    series: list[NDArray[np.float64]]


def ours(windows: Windows, horizon: int, advance: Callable[[int], None]) -> Said:
    """What the shipped forecaster says of each window.

    The path is that of a round for series without a limit: gaps and changes of level, then chunks as the workers get them.
    """
    shipped = Forecasting()
    n = len(windows)
    nothing = np.full(n, np.nan)
    began = time.process_time()
    answer = screen(
        Question(
            y=windows.past,
            limit=nothing,
            resolution=nothing,
            fastest=nothing,
            guard_ratio=0.6,
            horizon=horizon,
            min_history=shipped.min_history_steps,
            min_trend=shipped.min_trend_steps,
            reach=shipped.reach_ratio,
            max_gap=shipped.max_gap_steps,
        )
    )
    found: list[Prediction | None] = [None] * n
    rows = np.nonzero(answer.enough)[0].tolist()
    series = [answer.filled[row, int(answer.start[row]) :] for row in rows]
    for first in range(0, len(rows), shipped.chunk_series):
        some = slice(first, first + shipped.chunk_series)
        items = tuple((row, Job(y, False, row)) for row, y in zip(rows[some], series[some], strict=True))
        for label, result, _ in predict_chunk(Chunk(items, horizon, shipped.paths)):
            found[label] = None if isinstance(result, str) else result
        advance(len(items))
    return Said(found, time.process_time() - began, rows, series)


def scored(windows: Windows, horizon: int, advance: Callable[[int], None]) -> Scored:
    """Naive and predict_linear beside ours; a window of which nothing is said is scored as naive without a band."""
    told = ours(windows, horizon, advance)
    predictions = told.predictions
    scale = np.where(windows.scale > 0, windows.scale, np.nan)[:, None]
    last = np.repeat(windows.past[:, -1:], horizon, axis=1)
    said = np.array([p is not None for p in predictions])
    middle = np.array([last[row] if p is None else p.p50 for row, p in enumerate(predictions)])
    low = np.array([last[row] if p is None else p.p05 for row, p in enumerate(predictions)])
    high = np.array([last[row] if p is None else p.p95 for row, p in enumerate(predictions)])
    tiny = 1e-9 * np.abs(windows.future)
    forecasts = {"ours": middle, "naive": last, "predict_linear": linear(windows.past, horizon)}
    mase = {name: np.abs((said_ - windows.future) / scale).mean(axis=1) for name, said_ in forecasts.items()}
    mase["hindsight"] = np.minimum(mase["ours"], mase["naive"])
    least = least_errors(told.series, windows.future[told.rows], horizon) / scale[told.rows, 0]
    mase["hindsight"][told.rows] = np.minimum(mase["hindsight"][told.rows], least)
    return Scored(
        windows=windows,
        mase=mase,
        inside=(windows.future >= low - tiny) & (windows.future <= high + tiny),
        said=said,
        models=Counter(p.model for p in predictions if p is not None),
        seconds=told.seconds,
        level=np.array([0.0 if p is None else p.level for p in predictions]),
    )


@dataclass(frozen=True, slots=True)
class AutoEts:
    """statsforecast's AutoETS on some of the windows: which, its scaled errors, coverage of its 90 % band, and CPU seconds a series.

    `failed`: windows on which it raised; there it is scored as naive."""

    rows: NDArray[np.int64]
    mase: NDArray[np.float64]
    coverage: float
    seconds_each: float
    failed: int


def autoets(windows: Windows, horizon: int, sample: int, advance: Callable[[int], None]) -> AutoEts:
    """The first fit compiles and is not counted. Raises ModuleNotFoundError where statsforecast is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # third-party code on import
        from statsforecast.models import AutoETS  # type: ignore[import-untyped]  # it ships no types

    rows = np.unique(np.linspace(0, len(windows) - 1, min(sample, len(windows))).astype(np.int64))
    AutoETS(season_length=1).forecast(windows.past[rows[0]], h=horizon, level=[90])
    scale = np.where(windows.scale > 0, windows.scale, np.nan)
    errors, inside, spent, failed = [], [], 0.0, 0
    for row in rows.tolist():
        began = time.process_time()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                said = AutoETS(season_length=1).forecast(windows.past[row], h=horizon, level=[90])
            except Exception:  # it fails on some flat series (analytics.md §6 row 11); then it says naive
                failed += 1
                flat = np.full(horizon, windows.past[row, -1])
                said = {"mean": flat, "lo-90": flat, "hi-90": flat}
        spent += time.process_time() - began
        future = windows.future[row]
        errors.append(np.abs(said["mean"] - future).mean() / scale[row])
        inside.append(((future >= said["lo-90"]) & (future <= said["hi-90"])).mean())
        advance(1)
    return AutoEts(rows, np.array(errors), float(np.mean(inside)), spent / len(rows), failed)


def relative(mase: NDArray[np.float64], to: NDArray[np.float64]) -> float:
    """Geometric mean of the ratio of scaled errors over the windows that have a scale."""
    known = np.isfinite(mase) & np.isfinite(to)
    ratio = np.log(np.maximum(mase[known], _SMALLEST)) - np.log(np.maximum(to[known], _SMALLEST))
    return float(np.exp(ratio.mean())) if known.any() else float("nan")
