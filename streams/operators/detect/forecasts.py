"""Turns forecasts into predictive findings: a crossing that is near, likely, and has not happened yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from schemas.flow import Tick
from schemas.recent import Recent
from streams.operators.detect.findings import About, finding, unit_of
from streams.operators.detect.levels import LevelKey, Levels
from streams.operators.detect.wording import duration, quantity
from streams.rules.condition import Forecasted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from schemas.telemetry import v1
    from streams.operators.detect.samples import Times
    from streams.rules.model import Rule


MOST_SERIES: Final = 300_000
"""Series of which it is known when their newest forecast was made: three of each device that one process may have."""

_Series = tuple[str, str, str, str]


def _made_ns() -> Recent[_Series, int]:
    return Recent(MOST_SERIES)


def _plain(forecast: v1.Forecast) -> About:
    words = {"uid": forecast.uid} if forecast.uid else {}
    return About(forecast.entity, forecast.cluster, forecast.node, forecast.simulated, words=words)


@dataclass(slots=True)
class Forecasts:
    """State of the operator: what is predicted now, and when the newest forecast of each (cluster, node,
    entity, metric) was made."""

    rules: tuple[tuple[Rule, Forecasted], ...]
    levels: Levels
    made_ns: Recent[_Series, int] = field(default_factory=_made_ns)
    about: Callable[[v1.Forecast], About] = _plain
    owner: Callable[[v1.Forecast], v1.Workload | None] = lambda _: None


def start(rules: Sequence[Rule], times: Times) -> Forecasts:
    """A fresh state for the forecast rules among `rules`."""
    return Forecasts(tuple((r, r.when) for r in rules if isinstance(r.when, Forecasted)), Levels(times))


def step(state: Forecasts, items: Sequence[v1.Forecast | Tick]) -> tuple[Forecasts, list[v1.Finding]]:
    """Findings that begin, end, or are due again. A forecast past its validity is no longer repeated: its finding expires."""
    found: list[v1.Finding] = []
    for item in items:
        if isinstance(item, Tick):
            for key in state.levels.expired(item.at_ns):
                del state.levels.active[key]
            found += state.levels.repeated(item.at_ns)
        else:
            found += _foretold(state, item)
    return state, found


def _foretold(state: Forecasts, forecast: v1.Forecast) -> list[v1.Finding]:
    series = (forecast.cluster, forecast.node, forecast.entity, forecast.metric)
    if forecast.made_at_ns <= state.made_ns.get(series, 0):
        return []
    state.made_ns[series] = forecast.made_at_ns
    found: list[v1.Finding] = []
    for rule, when in state.rules:
        if when.metric != forecast.metric:
            continue
        key = LevelKey(rule.name, forecast.cluster, forecast.entity)
        stands = state.levels.active.get(key)
        if stands is not None and stands.finding.node != forecast.node:
            continue  # of a service whose instances are watched by several forecasters: who raised it takes it back
        if _near(forecast, when, was_active=key in state.levels):
            until = forecast.valid_until_ns or forecast.made_at_ns + state.levels.times.valid_ns
            found += state.levels.raised(_finding(state, rule, forecast, until), until_ns=until)
        else:
            found += state.levels.cleared(key, forecast.made_at_ns)
    return found


def _near(forecast: v1.Forecast, when: Forecasted, *, was_active: bool) -> bool:
    if forecast.withdrawn or not forecast.HasField("limit"):
        return False
    # what is reached already is a fact, and another rule's business
    sign = -1 if when.direction == "below" else 1
    if forecast.HasField("current") and sign * forecast.current >= sign * forecast.limit:
        return False
    if was_active:
        return forecast.breach_probability_ratio >= when.clear_probability_ratio
    eta_seconds = _eta_seconds(forecast, "p50")
    soon = eta_seconds is not None and eta_seconds <= when.within_seconds
    return soon and forecast.breach_probability_ratio >= when.probability_ratio


def _eta_seconds(forecast: v1.Forecast, quantile: str) -> float | None:
    """From when it was made, at least 0; the message counts from the end of its history. None: beyond the horizon."""
    name = f"eta_{quantile}_seconds"
    if not forecast.HasField(name):
        return None
    age_seconds = (forecast.made_at_ns - forecast.history_until_ns) / 1e9 if forecast.history_until_ns else 0.0
    seconds: float = getattr(forecast, name)
    return max(0.0, seconds - max(0.0, age_seconds))


def _finding(state: Forecasts, rule: Rule, forecast: v1.Forecast, until_ns: int) -> v1.Finding:
    at_ns = forecast.made_at_ns
    etas = {p: _eta_seconds(forecast, p) for p in ("p10", "p50", "p90")}
    said = {p: "beyond" if seconds is None else duration(seconds) for p, seconds in etas.items()}
    probability = quantity(forecast.breach_probability_ratio, "1", ratio=True)
    evidence = {"probability": probability, "forecast_model": forecast.model, "history_points": str(forecast.history_points)}
    if forecast.step_ns:
        evidence["history"] = duration(forecast.history_points * forecast.step_ns / 1e9)
        evidence["horizon"] = duration(len(forecast.p50) * forecast.step_ns / 1e9)
    evidence |= {f"eta_{p}": text for p, text in said.items()}
    if forecast.HasField("backtest_mase"):
        evidence["backtest_mase"] = f"{forecast.backtest_mase:.3g}"
    known, ratio = unit_of(forecast.metric)
    unit = forecast.unit or known
    if forecast.p50:
        evidence["last_p50"] = quantity(forecast.p50[-1], unit, ratio=ratio)
    made = finding(
        rule,
        state.about(forecast),
        active=True,
        at_ns=at_ns,
        since_ns=at_ns,
        valid_until_ns=min(at_ns + state.levels.times.valid_ns, until_ns),
        value=forecast.current if forecast.HasField("current") else None,
        limit=forecast.limit,
        metric=forecast.metric,
        unit=unit,
        words={"eta": said["p50"] if said["p50"] != "beyond" else "a while", "probability": probability},
        evidence=evidence,
    )
    if forecast.p05 and forecast.p95:  # where it will be at the horizon, with 90 %
        made.expected_low, made.expected_high = forecast.p05[-1], forecast.p95[-1]
    if (owner := state.owner(forecast)) is not None:
        made.owner.CopyFrom(owner)
    return made
