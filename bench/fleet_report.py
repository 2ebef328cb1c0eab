"""The figures of the fleet bench as tables for people, with the goals beside them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.table import Table

if TYPE_CHECKING:
    from bench.fleet_score import Figures, Score

ANCHORS: Final = (
    ("recall", "recall", "≥ 0.95", "of a GPU-failure predictor that was published: 0.46 to 0.85 precision"),
    ("precision", "precision", "≥ 0.9", ""),
    ("median_delay_s", "median delay, s", "", "ramps count from their first second"),
    ("false_per_100_device_days", "false findings per 100 device-days", "≤ 1", "issue 5"),
    ("false_anomalies_per_100_device_days", "of them by anomaly detectors, shadows included", "≤ 1", ""),
    ("findings_per_fault", "incidents per fault", "≤ 2", "issue 5"),
    ("findings_per_fault_ungrouped", "findings per fault, not grouped", "", ""),
    ("explained", "anomalies explained by context on clean days", "", ""),
)


def tables(score: Score, figures: Figures) -> Group:
    """All figures, then each kind of fault, then what was false."""
    whole = Table(title=f"{figures['faults']} faults, {figures['clean_device_days']} clean device-days", title_justify="left")
    for heading in ("", "here", "goal"):
        whole.add_column(heading, justify="left" if not heading else "right")
    for name, words, goal, _ in ANCHORS:
        whole.add_row(words, _said(figures[name]), goal)
    faults = Table(title="each kind of fault", title_justify="left")
    for heading in ("", "found", "median delay, s", "incidents", "findings", "seen by detectors", "told by"):
        faults.add_column(heading, justify="left" if heading in ("", "told by") else "right")
    for kind, cases in score.kinds().items():
        rules = Counter(rule for case in cases for rule in {rule for _, rule in case.told})
        faults.add_row(
            kind,
            f"{sum(c.delay_seconds is not None for c in cases)}/{len(cases)}",
            _said(figures[f"{kind}_median_delay_s"]),
            _said(figures[f"{kind}_findings_per_fault"]),
            _said(sum(c.raised for c in cases) / len(cases)),
            f"{sum(bool(c.anomalies) for c in cases)}/{len(cases)}",
            ", ".join(f"{rule} {n}" for rule, n in rules.most_common()) or "–",
        )
    false = Table(title="false findings by rule", title_justify="left")
    for heading in ("", "clean days", "days with faults"):
        false.add_column(heading, justify="left" if not heading else "right")
    counted = [score.false_rules(clean=clean) + _shadows(score, clean=clean) for clean in (True, False)]
    for rule in sorted(set(counted[0]) | set(counted[1])):
        false.add_row(rule, str(counted[0][rule]), str(counted[1][rule]))
    return Group(whole, faults, false)


def _shadows(score: Score, *, clean: bool) -> Counter[str]:
    """False findings that nobody is told of, marked as such."""
    return Counter(f"{r.rule} [shadow]" for _, was_clean, r in score.false if was_clean == clean and r.shadow)


def _said(value: float | int | str | None) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, int | float) else value
