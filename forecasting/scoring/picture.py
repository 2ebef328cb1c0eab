"""The report as a picture: errors, coverage by distance ahead, calibration, and the nearest and the furthest forecast of each metric.

matplotlib (extra `pictures`) is imported when a picture is drawn, by nothing else. Names of entities and models are other people's
text: no part of them is read as a formula, and what cannot be printed is shown as such.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from forecasting.scoring.metric import Example, MetricScore
    from forecasting.scoring.report import Report

FORMATS: Final = ("png", "svg")
MOST_METRICS: Final = 8
"""Rows of the picture: the metrics with the most forecasts that could be judged."""

_STYLE: Final[Any] = {
    "text.parse_math": False,  # a `$` in a name is a dollar
    "svg.fonttype": "none",
    "svg.hashsalt": "xpulse",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
}
_BLUE: Final = "#2563eb"
_GREY: Final = "#6b7280"
_RED: Final = "#dc2626"
_MOST_CHARACTERS: Final = 44
_TIMES: Final = ((1.0, "seconds"), (60.0, "minutes"), (3600.0, "hours"))
_SIZES: Final = {"By": (float(2**30), "GiB"), "Cel": (1.0, "°C"), "1": (0.01, "%")}


class NoPictures(Exception):
    """matplotlib is not installed; the text says what to type."""


def draw(report: Report, path: Path) -> None:
    """Write the picture. Raises ValueError for a file name that ends in none of FORMATS, NoPictures, and OSError."""
    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise ValueError(f"{path.name}: a picture ends in .png or .svg")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise NoPictures("matplotlib is not installed; install it with: pip install 'xpulse[pictures]'") from None
    shown = sorted(report.metrics.values(), key=lambda found: -found.total.forecasts)[:MOST_METRICS]
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that the font lacks is drawn as a box
        rows = max(1, len(shown))
        figure = Figure(figsize=(15, 2.2 + 0.22 * _bars(shown) + 2.7 * rows), dpi=110, layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=[1.2 + 0.22 * _bars(shown), 2.7 * rows])
        head, body = parts
        _errors(head.subplots(), shown)
        axes = body.subplots(rows, 4, squeeze=False)
        for row, found in zip(axes, shown, strict=False):
            _coverage(row[0], found)
            _calibration(row[1], found)
            _example(row[2], found, found.best, "nearest")
            _example(row[3], found, found.worst, "furthest")
        if not shown:
            for axis in axes.flat:
                _nothing(axis, "no forecasts in this period")
        figure.suptitle("Forecasts against what happened" + (" (simulated devices)" if report.simulated else ""), fontsize=12)
        # no date in it: the same report is the same file
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def label(text: str) -> str:
    """Other people's text as a label: one line, printable, not too long."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    half = _MOST_CHARACTERS // 2
    return clean if len(clean) <= _MOST_CHARACTERS else f"{clean[: half - 1]}…{clean[-half:]}"


def _bars(shown: list[MetricScore]) -> int:
    return sum(len(found.models) for found in shown)


def _errors(axis: Any, shown: list[MetricScore]) -> None:
    """A bar per metric and model: its scaled error; the mark is that of "it stays as it is" on the same forecasts."""
    names, values, naive = [], [], []
    for found in shown:
        for model, accuracy in sorted(found.models.items()):
            if accuracy.mase is not None:
                names.append(label(f"{found.target.metric} · {model}"))
                values.append(accuracy.mase)
                naive.append(accuracy.naive_sum / accuracy.scaled)
    if not names:
        _nothing(axis, "no scaled errors: nothing moved, or nothing was judged")
        return
    at = np.arange(len(names))
    axis.barh(at, values, color=_BLUE, height=0.6, label="forecast")
    axis.plot(naive, at, linestyle="none", marker="|", markersize=11, markeredgewidth=2, color=_RED, label="“it stays as it is”")
    axis.set_yticks(at, names)
    axis.invert_yaxis()
    if max(values + naive) > 50 * max(min(values), 1e-3):
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")  # powers would be written as formulas
    axis.set_title("mean scaled error (MASE), less is better")
    axis.legend(loc="lower right", frameon=False)


def _coverage(axis: Any, found: MetricScore) -> None:
    leads = sorted((lead_ns / 1e9, lead.inside / lead.judged) for lead_ns, lead in found.total.leads.items() if lead.judged)
    axis.set_title(f"{label(found.target.metric)}: inside the 90 % interval")
    if not leads:
        _nothing(axis, "nothing judged yet")
        return
    axis.axhspan(0.86, 0.94, color=_GREY, alpha=0.15, linewidth=0)
    axis.axhline(0.9, color=_GREY, linewidth=1)
    long, name = _time_unit(leads[-1][0])
    axis.plot([seconds / long for seconds, _ in leads], [share for _, share in leads], color=_BLUE, marker=".", markersize=3)
    axis.set_ylim(0, 1.03)
    axis.set_xlabel(f"{name} ahead")


def _calibration(axis: Any, found: MetricScore) -> None:
    axis.set_title("breach probability: said, and came true")
    counts, hits = found.calibration.counts, found.calibration.hits
    used = counts > 0
    if not used.any():
        _nothing(axis, "no breach was assessed")
        return
    centres = (np.arange(counts.size) + 0.5) / counts.size
    axis.plot([0, 1], [0, 1], color=_GREY, linewidth=1)
    sizes = 20 + 180 * counts[used] / counts.max()
    axis.scatter(centres[used], hits[used] / counts[used], s=sizes, color=_BLUE, alpha=0.8)
    axis.set_xlim(0, 1)
    axis.set_ylim(-0.05, 1.05)
    axis.set_xlabel(f"probability that was said, {int(counts.sum())} times")


def _example(axis: Any, found: MetricScore, example: Example | None, which: str) -> None:
    if example is None:
        axis.set_title(which)
        _nothing(axis, "none that moved" if which == "nearest" else "none")
        return
    said = example.said
    long, time_name = _time_unit(said.step_ns * said.horizon / 1e9)
    size, unit = _SIZES.get(found.unit, (1.0, found.unit))
    step = said.step_ns / 1e9 / long
    before, actual, p05, p50, p95 = (values / size for values in (example.before, example.actual, said.p05, said.p50, said.p95))
    past, after = (np.arange(before.size) - before.size + 1) * step, np.arange(1, said.horizon + 1) * step
    axis.fill_between(after, p05, p95, color=_BLUE, alpha=0.2, linewidth=0)
    axis.plot(after, p50, color=_BLUE, label="said")
    axis.plot(past, before, color="black", linewidth=1)
    axis.plot(after, actual, color="black", linewidth=1, label="came")
    if said.limit is not None and _in_sight(said.limit / size, np.r_[before, actual, p05, p95]):
        axis.axhline(said.limit / size, color=_RED, linewidth=1, linestyle="--")
    axis.set_title(f"{which}: {label(said.who.entity)}\n{label(said.model)}, MASE {example.mase:.2g}")
    axis.set_xlabel(time_name)
    axis.set_ylabel(label(unit))
    axis.legend(loc="best", frameon=False)


def _in_sight(limit: float, values: NDArray[np.float64]) -> bool:
    """Whether the picture would still show something else if the limit were in it."""
    known = values[np.isfinite(values)]
    reach = float(np.ptp(known)) if known.size else 0.0
    return bool(known.size) and known.min() - reach <= limit <= known.max() + reach


def _time_unit(seconds: float) -> tuple[float, str]:
    """Seconds of a unit in which a stretch of so many is easily read, and its name."""
    return next((unit for unit in _TIMES if seconds < 3 * unit[0] * 60), _TIMES[-1])


def _nothing(axis: Any, why: str) -> None:
    axis.text(0.5, 0.5, why, ha="center", va="center", color=_GREY, transform=axis.transAxes)
    axis.set_xticks([])
    axis.set_yticks([])
