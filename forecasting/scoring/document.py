"""The report as plain values, for `--json`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from forecasting.scoring.breaches import lead_seconds, precision

if TYPE_CHECKING:
    from forecasting.scoring.accuracy import Accuracy
    from forecasting.scoring.breaches import Judged
    from forecasting.scoring.metric import MetricScore
    from forecasting.scoring.report import Report


def document(report: Report) -> dict[str, Any]:
    """None where something is not known. Times are ns UTC, everything else in the unit that its name says, or the metric's."""
    return {
        "start_ns": report.start_ns,
        "end_ns": report.end_ns,
        "simulated": report.simulated,
        "unreadable": report.unreadable,
        "skipped": dict(report.skipped),
        "metrics": {name: _metric(found, report.pending[name]) for name, found in report.metrics.items()},
    }


def _metric(found: MetricScore, pending: int) -> dict[str, Any]:
    breaches = found.breaches
    by_model: dict[str, list[Judged]] = defaultdict(list)
    for one in breaches.judged:
        by_model[one.episode.model].append(one)
    return {
        "unit": found.unit,
        "direction": found.target.direction,
        "forecasts": found.said,
        "unknown": found.unknown,
        "pending": pending,
        **_accuracy(found.total),
        "breaches": {
            "crossings": breaches.crossings,
            "foretold": breaches.verdicts["hit"],
            "missed": breaches.missed,
            "missed_sudden": breaches.missed_sudden,
            "false": breaches.verdicts["false"],
            "averted": breaches.verdicts["averted"],
            "lost": breaches.verdicts["lost"],
            "open": breaches.verdicts["open"],
            "recall": breaches.recall,
            "precision": breaches.precision,
            "median_lead_seconds": breaches.lead_seconds,
            "brier": found.calibration.brier,
        },
        "models": {name: _accuracy(found.models[name]) | _said_by(by_model.get(name, [])) for name in sorted(found.models)},
        "leads": [
            {
                "lead_seconds": lead_ns / 1e9,
                "judged": lead.judged,
                "coverage": lead.inside / lead.judged if lead.judged else None,
                "mase": lead.scaled_sum / lead.scaled if lead.scaled else None,
            }
            for lead_ns, lead in sorted(found.total.leads.items())
        ],
        "calibration": [
            {"from": tenth / 10, "said": int(count), "came_true": int(hits)}
            for tenth, (count, hits) in enumerate(zip(found.calibration.counts, found.calibration.hits, strict=True))
        ],
    }


def _accuracy(accuracy: Accuracy) -> dict[str, Any]:
    return {
        "judged": accuracy.forecasts,
        "unscaled": accuracy.unscaled,
        "mase": accuracy.mase,
        "mase_median": accuracy.mase_median,
        "to_naive": accuracy.to_naive,
        "coverage_90": accuracy.coverage,
        "pinball": accuracy.pinball,
    }


def _said_by(judged: list[Judged]) -> dict[str, Any]:
    return {
        "breach_forecasts": len(judged),
        "precision": precision(judged),
        "median_lead_seconds": lead_seconds(judged),
    }
