"""Makes Findings: the one place that fills the message, from a rule, what it is about, and what was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, assert_never

from schemas.catalogue import BY_NAME
from schemas.telemetry import v1
from streams.operators.detect.wording import quantity
from streams.rules.condition import (
    Above,
    Anomalous,
    Below,
    Beyond,
    BitsSet,
    Bursting,
    Equals,
    Forecasted,
    Ghost,
    Happened,
    Increases,
    RatioAbove,
    Residual,
    Silent,
    Unlike,
)
from streams.rules.vocabulary import SERVICE_METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streams.rules.model import Rule

UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a detector says: score 0-1, its name, and the band that was expected in the unit of the value (NaN: none)."""

    score: float
    detector: str
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class Shape:
    """Recent values, oldest first, `step_ns` apart, the last one now; NaN where nothing is known."""

    values: Sequence[float]
    step_ns: int


@dataclass(frozen=True, slots=True)
class About:
    """What a finding is about. `words` go into its summary, `evidence` is shown beside it."""

    entity: str
    cluster: str
    node: str
    simulated: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)


def finding(
    rule: Rule,
    about: About,
    *,
    active: bool,
    at_ns: int,
    since_ns: int,
    valid_until_ns: int,
    value: float | None = None,
    limit: float | None = None,
    metric: str = "",
    unit: str = "",
    words: Mapping[str, str] | None = None,
    evidence: Mapping[str, str] | None = None,
    judged: Judged | None = None,
    shape: Shape | None = None,
) -> v1.Finding:
    """A Finding of `rule`; `value` and `limit` are in the metric's unit, or in `unit` where there is no metric."""
    known, ratio = unit_of(metric)
    unit = unit or known
    said = {"entity": about.entity, "cluster": about.cluster, "node": about.node, "rule": rule.name, "metric": metric}
    if value is not None:
        said["value"] = quantity(value, unit, ratio=ratio)
    if limit is not None:
        said["limit"] = quantity(limit, unit, ratio=ratio)
    if judged is not None:
        said |= {"score": f"{judged.score:.2f}", "detector": judged.detector, "expected": _band(judged, unit, ratio=ratio)}
    said |= about.words
    said |= words or {}
    made = v1.Finding(
        rule=rule.name,
        cluster=about.cluster,
        node=about.node,
        entity=about.entity,
        kind=_kind(rule),
        active=active,
        severity=rule.severity_number,
        observed_at_ns=at_ns,
        valid_until_ns=valid_until_ns,
        since_ns=since_ns,
        value=value,
        limit=limit,
        metric=metric,
        unit=unit,
        summary=rule.summary.format_map(_Words(said)),
        hold_ns=rule.hold_ns,
        clear_ns=rule.clear_ns,
        simulated=about.simulated,
        runbook=rule.runbook,
        mode=rule.mode_number,
    )
    if judged is not None:
        made.score, made.detector = judged.score, judged.detector
        if not math.isnan(judged.low):
            made.expected_low = judged.low
        if not math.isnan(judged.high):
            made.expected_high = judged.high
    if shape is not None and len(shape.values):
        made.recent.extend(shape.values)
        made.recent_step_ns = shape.step_ns
    for name in ("value", "limit", "score", "detector", "expected", "node", "index", "model"):
        if name in said:
            made.evidence[name] = said[name]
    for name, text in {**about.evidence, **(evidence or {})}.items():
        made.evidence[name] = text
    return made


def unit_of(metric: str) -> tuple[str, bool]:
    """UCUM unit of a metric, and whether it is a ratio that is said in percent; both empty where there is no metric."""
    if metric in SERVICE_METRICS:
        return SERVICE_METRICS[metric], metric.endswith("_ratio")
    if metric in BY_NAME:
        return BY_NAME[metric].unit, metric.endswith("_ratio")
    return "", False


def _band(judged: Judged, unit: str, *, ratio: bool) -> str:
    low, high = (None if math.isnan(x) else quantity(x, unit, ratio=ratio) for x in (judged.low, judged.high))
    match low, high:
        case None, None:
            return UNKNOWN
        case None, _:
            return f"at most {high}"
        case _, None:
            return f"at least {low}"
        case _:
            return f"{low} to {high}"


class _Words(dict[str, str]):
    def __missing__(self, word: str) -> str:
        return UNKNOWN


def _kind(rule: Rule) -> v1.FindingKind:
    match rule.when:
        case Above() | Below() | RatioAbove() | Equals() | Increases() | BitsSet() | Bursting() | Ghost():
            return v1.FindingKind.FINDING_KIND_THRESHOLD
        case Anomalous() | Unlike() | Residual() | Beyond():
            return v1.FindingKind.FINDING_KIND_ANOMALY
        case Silent():
            return v1.FindingKind.FINDING_KIND_SILENCE
        case Happened():
            return v1.FindingKind.FINDING_KIND_EVENT
        case Forecasted():
            return v1.FindingKind.FINDING_KIND_FORECAST
        case other:
            assert_never(other)
