"""How long one round over 10,000 series takes on two cores, every one of them forecast, and how long AutoETS would take."""

from __future__ import annotations

import resource
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.pool import Processes, chunks
from forecasting.predict import Job
from forecasting.screening import Question, screen
from forecasting.settings import Forecasting

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SERIES: Final = 10_000
CORES: Final = 2
LIMIT: Final = 95.0
MIX: Final = {"constant": 0.30, "noisy": 0.25, "diurnal": 0.20, "wandering": 0.10, "sawtooth": 0.10, "rising": 0.05}
"""Shares of what a fleet's series look like; a twentieth of them threatens its limit, far more than ever does."""

_POLL_SECONDS: Final = 0.005
_MOST_SECONDS: Final = 1_800.0


@dataclass(frozen=True, slots=True)
class Swept:
    """`seconds` from the first look at the series to the last prediction; `screening_seconds` of it before any model.

    `cpu_seconds` is what this process and the workers spent: on a busy machine it tells more than the seconds.
    """

    series: int
    candidates: int
    predicted: int
    seconds: float
    screening_seconds: float
    cpu_seconds: float
    models: Counter[str]


def mixed(series: int, history: int, seed: int) -> NDArray[np.float64]:
    """(series, history): in percent of a card, in random order."""
    rng = np.random.default_rng([seed, 81])
    at = np.arange(history)
    kinds = rng.permutation(np.repeat(list(MIX), [round(share * series) for share in MIX.values()]))
    out = np.empty((len(kinds), history))
    for row, kind in enumerate(kinds.tolist()):
        level, noise = float(rng.uniform(20, 85)), float(rng.uniform(0.02, 1.0))
        match kind:
            case "constant":
                out[row] = round(level)
            case "noisy":
                out[row] = level + noise * rng.standard_normal(history)
            case "diurnal":
                phase = rng.uniform(0, 2 * np.pi)
                out[row] = level + 10 * np.sin(2 * np.pi * at / 1440 + phase) + noise * rng.standard_normal(history)
            case "wandering":
                out[row] = level + np.cumsum(0.3 * noise * rng.standard_normal(history))
            case "sawtooth":
                out[row] = level + 8 * (at % int(rng.integers(20, 60))) / 60 + 0.1 * noise * rng.standard_normal(history)
            case _:
                onset = int(rng.integers(history // 2, history - 12))
                rise = (LIMIT - 60) / rng.uniform(60, 120) * np.clip(at - onset, 0, None)
                out[row] = np.minimum(60 + rise, 0.99 * LIMIT) + 0.05 * rng.standard_normal(history)
    return np.clip(out, 0.0, 100.0)


def sweep(y: NDArray[np.float64], advance: Callable[[int], None]) -> Swept:
    """Screen all of `y`, have every series forecast by the shipped pool on CORES processes, wait for the last."""
    shipped = Forecasting()
    limit = np.full(len(y), LIMIT)
    before = _children_seconds()
    pool = Processes(CORES, shipped.worker_timeout_seconds, Counter())
    try:
        pool.start()
        _warm(pool)
        began, spent = time.monotonic(), time.process_time()
        answer = screen(
            Question(
                y=y,
                limit=limit,
                resolution=limit * 0.001,
                fastest=limit * (shipped.step_seconds / shipped.fastest_fill_seconds),
                guard_ratio=0.6,
                horizon=shipped.horizon_steps,
                min_history=shipped.min_history_steps,
                min_trend=shipped.min_trend_steps,
                reach=shipped.reach_ratio,
                max_gap=shipped.max_gap_steps,
            )
        )
        screened = time.monotonic() - began
        jobs = [
            (row, Job(answer.filled[row, int(answer.trend_start[row]) :].copy(), bool(answer.candidate[row]), row, LIMIT, 0.0, 100.0))
            for row in np.nonzero(answer.enough)[0].tolist()
        ]
        for chunk in chunks(jobs, shipped.chunk_series, horizon=shipped.horizon_steps, paths=shipped.paths):
            pool.submit(chunk)
        models: Counter[str] = Counter()
        while not pool.idle and time.monotonic() - began < _MOST_SECONDS:
            found = pool.poll()
            models.update("none" if isinstance(item.result, str) else item.result.model for item in found)
            advance(len(found))
            time.sleep(_POLL_SECONDS)
        seconds = time.monotonic() - began
        spent = time.process_time() - spent
    finally:
        pool.close()
    spent += _children_seconds() - before
    return Swept(len(y), int(answer.candidate.sum()), sum(models.values()) - models["none"], seconds, screened, spent, models)


def _children_seconds() -> float:
    """CPU of child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _warm(pool: Processes) -> None:
    """The shipped pool's processes have long begun when a round comes."""
    job = Job(np.arange(40.0), False, 0)
    for chunk in chunks([(n, job) for n in range(2 * CORES)], 1, horizon=2, paths=100):
        pool.submit(chunk)
    end = time.monotonic() + _MOST_SECONDS
    while not pool.idle and time.monotonic() < end:
        pool.poll()
        time.sleep(_POLL_SECONDS)
