"""The forecaster's score as a table: a line per metric, and one per model that made its forecasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from forecasting.scoring.breaches import lead_seconds, precision
from streams.operators.detect.wording import duration, quantity
from xpulse.logs import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from forecasting.scoring.accuracy import Accuracy
    from forecasting.scoring.metric import MetricScore
    from forecasting.scoring.report import Report

UNKNOWN: Final = "–"
_SAID: Final = {"Cel": "°C", "1": ""}
_COLUMNS: Final = (
    "judged",
    "MASE",
    "vs naive",
    "in 90 %",
    "pinball",
    "crossed",
    "foretold",
    "false",
    "averted",
    "recall",
    "precision",
    "lead",
)


def table(report: Report) -> RenderableType:
    """The whole report."""
    said = Table(box=None, pad_edge=False, header_style="bold")
    said.add_column("metric and model", no_wrap=True)
    for name in _COLUMNS:
        said.add_column(name, justify="right", no_wrap=True)
    for name, found in report.metrics.items():
        said.add_row(Text(printable(name), style="bold"), *_cells(_whole(found)))
        for model, accuracy in sorted(found.models.items()):
            said.add_row(Text("  " + printable(model or "unnamed")), *_cells(_by_model(found, model, accuracy)), style="dim")
    return Group(said, *(Text(note, style="dim") for note in notes(report)))


def notes(report: Report) -> list[str]:
    """What the table leaves out, and why."""
    found: list[str] = []
    if report.simulated:
        found.append("The devices are simulated.")
    for name, metric in report.metrics.items():
        verdicts, breaches = metric.breaches.verdicts, metric.breaches
        parts = [
            (report.pending[name], "whose time has not come"),
            (metric.unknown, "of which too little is known of what came"),
            (metric.total.unscaled, "of series that did not move, so without a MASE"),
        ]
        more = [f"{number} {what}" for number, what in parts if number]
        endings = [
            (breaches.missed_sudden, "crossed by a jump, which no trend shows"),
            (verdicts["open"], "still standing"),
            (verdicts["lost"], "lost with their signal"),
        ]
        ends = [f"{number} {what}" for number, what in endings if number]
        if more or ends:
            said = "; ".join(
                filter(None, ("forecasts: " + ", ".join(more) if more else "", "breaches: " + ", ".join(ends) if ends else ""))
            )
            found.append(f"{printable(name)}: {said}.")
    found += [f"{printable(name)} is left out: {printable(why)}" for name, why in report.skipped.items()]
    if report.unreadable:
        found.append(f"{report.unreadable} stored rows could not be read: who writes them is no forecaster of ours.")
    return found


def _whole(found: MetricScore) -> list[str]:
    breaches = found.breaches
    verdicts = breaches.verdicts
    return [
        *_accuracy(found.total, found.unit),
        str(breaches.crossings),
        str(verdicts["hit"]),
        str(verdicts["false"]),
        str(verdicts["averted"]),
        _percent(breaches.recall),
        _percent(breaches.precision),
        _lead(breaches.lead_seconds),
    ]


def _by_model(found: MetricScore, model: str, accuracy: Accuracy) -> list[str]:
    """Crossings have no model, so what was missed is nobody's."""
    judged = [one for one in found.breaches.judged if one.episode.model == model]
    count = {verdict: sum(one.verdict == verdict for one in judged) for verdict in ("hit", "false", "averted")}
    return [
        *_accuracy(accuracy, found.unit),
        "",
        str(count["hit"]) if judged else "",
        str(count["false"]) if judged else "",
        str(count["averted"]) if judged else "",
        "",
        _percent(precision(judged)) if judged else "",
        _lead(lead_seconds(judged)) if judged else "",
    ]


def _accuracy(accuracy: Accuracy, unit: str) -> list[str]:
    return [
        str(accuracy.forecasts),
        _number(accuracy.mase),
        _number(accuracy.to_naive),
        _percent(accuracy.coverage),
        _pinball(accuracy.pinball, unit),
    ]


def _cells(texts: Sequence[str]) -> list[Text]:
    return [Text(text) for text in texts]


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}" if value < 100 else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value * 100:.0f} %"


def _lead(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else duration(seconds)


def _pinball(value: float | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    if unit == "By":
        return quantity(value, unit)
    return printable(f"{value:.3g} {_SAID.get(unit, '' if unit.startswith('{') else unit)}".rstrip())
