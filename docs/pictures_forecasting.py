"""Pictures of the forecasting guide: series of the simulated fleet, and what the shipped screening and models made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collectors.simulated.fleet import Fleet
from collectors.simulated.settings import Simulated
from docs.drawing import BLUE, GREY, ORANGE, PALE, RED, level, save, sheet
from docs.story import CLUSTER, STARTED_AT_NS
from forecasting.predict import Job, Prediction, predict
from forecasting.screening import Answer, Question, screen
from forecasting.settings import Forecasting
from forecasting.targets import CORE_TEMPERATURE, MEMORY
from schemas.catalogue import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from forecasting.targets import Target

SETTINGS: Final = Forecasting()
GIB: Final = 2**30


def sampled(minutes: int, metric: str, **settings: Any) -> tuple[Fleet, NDArray[np.float64]]:
    """A scenario's fleet and the metric of all its cards, shape (minutes, devices): one value a minute, as the forecaster keeps them."""
    fleet = Fleet(Simulated(clusters=(CLUSTER,), **settings), clusters=(CLUSTER,), started_at_ns=STARTED_AT_NS)
    rows = []
    for minute in range(1, minutes + 1):
        fleet.advance(STARTED_AT_NS + minute * 60_000_000_000)
        rows.append(fleet.view().columns[metric].astype(np.float64))
    return fleet, np.stack(rows)


@dataclass(frozen=True, slots=True)
class Told:
    """What the forecaster says of a series at its end: how it was screened, and the prediction where it deserves one."""

    answer: Answer
    prediction: Prediction | None
    start: int


def ask(series: NDArray[np.float64], target: Target, limit: float, *, most: float | None = None) -> Told:
    """The shipped screening and, for a candidate, the shipped models."""
    y = series[None, -SETTINGS.history_steps :]
    answer = screen(
        Question(
            y=y,
            limit=np.array([limit]),
            resolution=np.array([limit * target.resolution_ratio]),
            fastest=np.array([limit * SETTINGS.step_seconds / SETTINGS.fastest_fill_seconds]),
            guard_ratio=target.guard_ratio,
            horizon=SETTINGS.horizon_steps,
            min_history=SETTINGS.min_history_steps,
            min_trend=SETTINGS.min_trend_steps,
            reach=SETTINGS.reach_ratio,
            max_gap=SETTINGS.max_gap_steps,
        )
    )
    start = int(answer.trend_start[0])
    if not answer.candidate[0]:
        return Told(answer, None, start)
    job = Job(answer.filled[0, start:].copy(), True, 1, limit, 0.0, most)
    return Told(answer, predict(job, horizon=SETTINGS.horizon_steps, paths=SETTINGS.paths), start)


def said_first(
    series: NDArray[np.float64], target: Target, limit: float, after: int, *, most: float | None = None
) -> tuple[int, Prediction]:
    """The first minute at which a breach is said: likely enough in as many rounds in a row as the settings want."""
    row = 0
    for minute in range(after, len(series)):
        told = ask(series[: minute + 1], target, limit, most=most)
        crossing = told.prediction.crossing if told.prediction else None
        row = row + 1 if crossing and crossing.probability >= SETTINGS.raise_probability_ratio else 0
        if told.prediction and row >= SETTINGS.raise_rounds:
            return minute, told.prediction
    raise ValueError("nothing was ever said of this series: choose another scenario")


def fan(axes: Axes, at: float, prediction: Prediction, unit: float, colour: str = ORANGE) -> None:
    """Median and 90 % interval after minute `at`."""
    ahead = at + np.arange(1, prediction.p50.size + 1)
    axes.fill_between(ahead, prediction.p05 / unit, prediction.p95 / unit, color=colour, alpha=0.25, linewidth=0)
    axes.plot(ahead, prediction.p50 / unit, color=colour)


def foretold(
    axes: Axes,
    series: NDArray[np.float64],
    target: Target,
    limit: float,
    begin: int,
    *,
    unit: float = 1.0,
    otherwise: str = "",
    **more: Any,
) -> str:
    """Draw when a breach was foretold and what came; what was said, in words."""
    at, prediction = said_first(series, target, limit, begin, **more)
    crossing = prediction.crossing
    assert crossing is not None
    minutes = np.arange(1, len(series) + 1)
    crossed = np.flatnonzero(series >= limit)
    axes.plot(minutes[at:], series[at:] / unit, color=PALE, label="what came")
    axes.plot(minutes[: at + 1], series[: at + 1] / unit, color=BLUE, label="what was known")
    fan(axes, minutes[at], prediction, unit)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.12 * (high - low))
    etas = {"p10": crossing.p10_steps, "p50": crossing.p50_steps, "p90": crossing.p90_steps}
    reached = {name: steps for name, steps in etas.items() if steps is not None}
    for steps in reached.values():
        axes.plot(minutes[at] + steps, limit / unit, "|", color=RED, markersize=10, markeredgewidth=1.6)
    middle = minutes[at] + sum(reached.values()) / max(1, len(reached))
    axes.text(middle, limit / unit + 0.04 * (high - low), ", ".join(reached), color=RED, fontsize=8, ha="center")
    axes.axvline(minutes[at], color=GREY, linewidth=0.8, linestyle=":")
    lead = f"{crossed[0] - at} min before the limit" if crossed.size else otherwise
    text = f" said {at - begin + 1} min after it began,\n {lead}"
    axes.text(minutes[at], 0.04, text, fontsize=8, transform=axes.get_xaxis_transform(), color=GREY)
    return f"{prediction.model}, breach probability {crossing.probability:.0%}"


def breach() -> Path:
    """A leak and a card that gets ever warmer, foretold, and what came."""
    begin, length = 120, 50
    figure, axes = sheet(2, height=5.2, sharex=True)
    above, below = axes[:, 0]
    fleet, used = sampled(begin + length, "memory_used_bytes", nodes=2, seed=7, faults=(f"memory_leak@{begin}m+{length}m",))
    capacity = float(fleet.settings.chip.memory_bytes)
    series = used[:, fleet.faults[0].cards[0]]
    said = foretold(above, series, MEMORY, MEMORY.limit_ratio * capacity, begin, unit=GIB, most=capacity)
    level(above, MEMORY.limit_ratio * capacity / GIB, "95 %")
    above.set_title(f"A memory leak: {said}")
    above.set_ylabel("memory used, GiB")
    fleet, celsius = sampled(begin + length, "temperature_celsius", nodes=2, seed=3, faults=(f"thermal_drift@{begin}m+{length}m",))
    slowdown = fleet.settings.chip.slowdown_celsius
    said = foretold(
        below,
        celsius[:, fleet.faults[0].cards[0]],
        CORE_TEMPERATURE,
        slowdown,
        begin,
        otherwise="the driver lowers the clocks just before the limit",
    )
    level(below, slowdown, "slows down")
    below.set_title(f"Cooling that gets worse: {said}")
    below.set_ylabel("temperature, °C")
    for plot in (above, below):
        plot.set_xlim(60, begin + length + 15)
        plot.legend(loc="upper left")
    below.set_xlabel("minutes")
    return save(figure, "forecast-breach")


def rounds_that_say(series: NDArray[np.float64], target: Target, limit: float, **more: Any) -> int:
    """In how many of the rounds, one a minute, a breach would be as likely as is said."""
    said = 0
    for minute in range(SETTINGS.min_history_steps, len(series)):
        found = ask(series[: minute + 1], target, limit, **more).prediction
        said += found is not None and found.crossing is not None and found.crossing.probability >= SETTINGS.raise_probability_ratio
    return said


def quiet() -> Path:
    """Rises that are no fault: a growing service with a collector, a deploy that loads a model, the load of the day. Nothing is said."""
    minutes = 480
    fleet, used = sampled(minutes, "memory_used_bytes", nodes=4, seed=7, deploy_memory_ratio=0.3)
    _, celsius = sampled(minutes, "temperature_celsius", nodes=1, seed=7, diurnal_period_seconds=7200)
    grows = next(s for s in fleet.services if s.memory == "grow").cards[0]
    moved = max((s.cards[0] for s in fleet.services if s.memory != "grow"), key=lambda card: np.ptp(used[:, card]))
    capacity = float(fleet.settings.chip.memory_bytes)
    limit, slowdown = MEMORY.limit_ratio * capacity, fleet.settings.chip.slowdown_celsius
    figure, axes = sheet(1, 3, height=2.8)
    scenes: list[tuple[NDArray[np.float64], Target, float, float, str]] = [
        (used[:, grows], MEMORY, limit, GIB, "memory that is collected"),
        (used[:, moved], MEMORY, limit, GIB, "a service deployed anew"),
        (celsius[:, 0], CORE_TEMPERATURE, slowdown, 1.0, "the load of the day"),
    ]
    for plot, (series, target, line, unit, title) in zip(axes[0], scenes, strict=True):
        plot.plot(np.arange(len(series)), series / unit, color=BLUE)
        plot.axhline(line / unit, color=RED, linestyle="--", linewidth=1)
        rounds = len(series) - SETTINGS.min_history_steps
        plot.set_title(f"{title}:\nforetold in {rounds_that_say(series, target, line)} of {rounds} rounds")
        plot.set_xlabel("minutes")
        plot.set_ylim(0, 1.06 * line / unit)
        plot.set_ylabel("GiB" if unit == GIB else "°C")
    return save(figure, "forecast-quiet")


def models() -> Path:
    """What the backtest chooses for series of different kinds, and what came."""
    at, ahead = 240, SETTINGS.horizon_steps
    fault = f"{at - 60}m+{60 + ahead}m"
    scenes: list[tuple[str, str, float, str, dict[str, Any]]] = [
        ("memory that leaks", "memory_used_bytes", GIB, "GiB", {"faults": (f"memory_leak@{at - 15}m+60m",)}),
        ("a card that gets warmer", "temperature_celsius", 1.0, "°C", {"faults": (f"thermal_drift@{fault}",)}),
        ("power at steady work", "power_watts", 1.0, "W", {}),
        ("load in short days", "utilization_ratio", 0.01, "%", {"diurnal_period_seconds": 3600}),
        ("memory that is collected", "memory_used_bytes", GIB, "GiB", {"grow": True}),
        ("corrected errors, a count", "ecc_corrected_volatile_errors", 1.0, "", {"faults": (f"ecc_growth@{fault}",)}),
    ]
    figure, axes = sheet(3, 2, height=6.2)
    for plot, (title, metric, unit, name, settings) in zip(axes.ravel(), scenes, strict=True):
        grows = settings.pop("grow", False)
        fleet, values = sampled(at + ahead, metric, nodes=2, seed=7, **settings)
        cards = fleet.faults[0].cards if fleet.faults else next(s.cards for s in fleet.services if (s.memory == "grow") == grows)
        series = values[:, cards[0]]
        count = BY_NAME[metric].kind == "counter"
        chip = fleet.settings.chip
        limit = {"GiB": 0.95 * chip.memory_bytes, "°C": chip.slowdown_celsius, "W": chip.power_limit_watts}.get(name, float("nan"))
        start = 0 if count else ask(series[:at], MEMORY, limit).start
        job = Job(series[start:at], False, 1, low=0.0, kind="counter" if count else "gauge")
        prediction = predict(job, horizon=ahead, paths=SETTINGS.paths)
        plot.axvline(start, color=GREY, linewidth=0.8, linestyle=":")
        minutes = np.arange(1, len(series) + 1)
        plot.plot(minutes[at - 1 :], series[at - 1 :] / unit, color=PALE)
        plot.plot(minutes[:at], series[:at] / unit, color=BLUE)
        fan(plot, at, prediction, unit)
        plot.set_title(f"{title}: {prediction.model}")
        plot.set_ylabel(name)
        plot.set_xlim(at - 120, at + ahead + 1)
    for plot in axes[-1]:
        plot.set_xlabel("minutes")
    return save(figure, "forecast-models")


PICTURES: Final[dict[str, Callable[[], Path]]] = {"forecast-breach": breach, "forecast-models": models, "forecast-quiet": quiet}
