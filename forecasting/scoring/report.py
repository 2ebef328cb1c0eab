"""The forecaster's score over a period, from nothing but the store: forecasts and history are read in stretches, so memory is bounded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from forecasting.scoring.actual import Actual
from forecasting.scoring.interventions import Interventions
from forecasting.scoring.metric import LOOK_BACK_STEPS, MetricScore
from forecasting.scoring.said import said as read_said
from forecasting.targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forecasting.scoring.said import Said
    from schemas.store import Store

_STRETCH_NS: Final = 2 * 3600 * 10**9
"""Forecasts of so long are held at once: of 10,000 series, one each five minutes, about 200 MB."""

_LEAST_STRETCHES: Final = 8
"""A short period is cut smaller, so that progress is seen."""


@dataclass(slots=True)
class Report:
    """Scores by metric. `pending`: forecasts whose horizon has not passed yet; `unreadable`: stored rows that are none of ours."""

    start_ns: int
    end_ns: int
    metrics: dict[str, MetricScore] = field(default_factory=dict)
    pending: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    simulated: bool = False


def score(
    store: Store,
    targets: Mapping[str, Target],
    *,
    start_ns: int,
    end_ns: int,
    standing_from: float,
    metrics: Sequence[str] = (),
    progress: Callable[[float, str], None] = lambda share, metric: None,
) -> Report:
    """Everything that was forecast in [start, end), where it can be judged by then.

    `targets` by metric; a forecast of a metric that is none any more is judged too. `metrics` none: all that the store has.
    `progress(share, metric)` is called after each stretch. Raises ConnectionError, and KeyError for a metric nobody forecast.
    """
    forecast = sorted({dict(tags).get("metric", "") for tags in store.series("forecast")})
    if unknown := [name for name in metrics if name not in forecast]:
        raise KeyError(f"no forecasts of {', '.join(unknown)} in the store; there are {', '.join(forecast) or 'none at all'}")
    report = Report(start_ns, end_ns)
    chosen = [name for name in forecast if not metrics or name in metrics]
    for number, name in enumerate(chosen):
        target = targets.get(name)
        if target is None:
            try:
                target = Target(metric=name)
            except ValidationError as error:
                report.skipped[name] = error.errors()[0]["msg"].removeprefix("Value error, ")
                continue
        found = MetricScore(target, standing_from=standing_from, stepped_in=Interventions(store).stepped_in)
        _score_metric(store, found, report, lambda share, number=number, name=name: progress((number + share) / len(chosen), name))  # type: ignore[misc]  # defaults bind the loop's values
        report.metrics[name] = found
    return report


def _score_metric(store: Store, found: MetricScore, report: Report, progress: Callable[[float], None]) -> None:
    name = found.target.metric
    start_ns, end_ns = report.start_ns, report.end_ns
    stretch_ns = max(1, min(_STRETCH_NS, -(-(end_ns - start_ns) // _LEAST_STRETCHES)))
    grids: dict[int, Actual] = {}
    waiting: list[Said] = []
    for at_ns in range(start_ns, end_ns, stretch_ns):
        until_ns = min(at_ns + stretch_ns, end_ns)
        new = _read(store, report, name, at_ns, until_ns)
        waiting += [one for one in new if one.withdrawn is None and one.horizon and one.step_ns > 0]
        for one in new:
            if one.step_ns > 0 and one.step_ns not in grids:
                grids[one.step_ns] = Actual(store, found.target, one.step_ns)
            found.unit = one.unit or found.unit
        later: list[Said] = []
        for step_ns, grid in grids.items():
            grid.move(at_ns // step_ns - LOOK_BACK_STEPS - _horizon(waiting, step_ns), until_ns // step_ns)
            those = [one for one in waiting if one.step_ns == step_ns]
            found.compare([one for one in those if _over(one, grid)], grid)
            later += [one for one in those if not _over(one, grid)]
        waiting = later
        finest = grids[min(grids)] if grids else None
        step_ns = finest.step_ns if finest is not None else 1
        found.follow(new, finest, at_ns // step_ns, until_ns // step_ns)
        progress((until_ns - start_ns) / (end_ns - start_ns))
    report.pending[name] += len(waiting)
    found.breaches.finish(end_ns)


def _over(one: Said, grid: Actual) -> bool:
    """Whether all that was forecast has come to pass."""
    return grid.bin_of(one.until_ns) + one.horizon < grid.end


def _horizon(waiting: Sequence[Said], step_ns: int) -> int:
    """Steps back to the oldest forecast that waits for its end."""
    return max((one.horizon for one in waiting if one.step_ns == step_ns), default=0)


def _read(store: Store, report: Report, metric: str, start_ns: int, end_ns: int) -> list[Said]:
    found = []
    for row in store.rows("forecast", start_ns=start_ns, end_ns=end_ns, where={"metric": metric}):
        try:
            one = read_said(row)
        except (ValueError, TypeError):
            report.unreadable += 1
            continue
        report.simulated |= one.simulated
        found.append(one)
    return found
