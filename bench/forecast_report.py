"""The figures of a run of bench-forecast: flat, for a file, and as tables beside what others published or reach here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from bench.forecast_accuracy import relative
from bench.forecast_sweep import CORES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bench.forecast_accuracy import AutoEts, Scored
    from bench.forecast_faults import Quiet, Rack, Told
    from bench.forecast_sweep import Swept

Figures = dict[str, float | int | str]

GOALS: Final[Mapping[str, str]] = {
    "mase_ratio_to_predict_linear": ">= 5",
    "mase_ratio_hindsight_to_predict_linear": "(the best of our menu for each window, chosen afterwards)",
    "mase_ratio_to_predict_linear_memory_undisturbed": "(GPU memory, nothing loaded or freed in the future; few windows make it)",
    "relative_mase_to_naive": "<= 0.95",
    "coverage_90": "0.86 to 0.94",
    "fault_recall": ">= 0.95",
    "fault_precision": ">= 0.9",
    "median_lead_minutes": ">= 15",
    "false_alerts_per_100_series_days": "<= 0.2",
    "false_alerts_of_changes": "0",
    "rack_incidents": "1",
    "sweep_10000_series_s": "<= 60",
    "sweep_10000_series_on_two_free_cores_s": "",
}
"""Issue 5."""

ANCHORS: Final = (
    (
        "mean MASE, NAB hardware, 72 steps",
        "naive 2.00, predict_linear 2.91, AutoReg 2.07, Theta 2.29, ARIMA 2.31, damped ETS 2.35 (analytics.md 2.1)",
    ),
    ("mean MASE, GPU memory (GenTD26, not here)", "naive 1.38, predict_linear 7.86, damped ETS 1.23 (analytics.md 2.1)"),
    ("time a series", "statsmodels ETS 10-15 ms, Theta 63 ms, local level 100 ms (analytics.md 2.1)"),
    ("precision of predicting GPU failures", "46.3 % classic models, 85.4 % ensembles (ByteDance, analytics.md 2.4)"),
)


_SHORT: Final = ("mase_mean_naive_30", "mase_mean_naive_nab", "mase_mean_naive_fleet")
"""Of the short horizon the table shows these."""


def figures(
    scored: Mapping[int, Scored],
    long_horizon: int,
    ets: AutoEts | None,
    told: Sequence[Told],
    quiet: Sequence[Quiet],
    rack: Rack | None,
    changes: int | None,
    swept: Swept | None,
    sweep_ets: AutoEts | None,
    skipped: Mapping[str, str],
) -> Figures:
    """Every figure under one flat name. Those without a horizon in it are of the long one."""
    found: Figures = {}
    for horizon, of in scored.items():
        end = "" if horizon == long_horizon else f"_{horizon}_steps"
        found |= {name + end: value for name, value in _accuracy(of).items()}
    if ets is not None and long_horizon in scored:
        found |= _beside(scored[long_horizon], ets)
    if told:
        found |= _foretold(told)
    if quiet:
        days = sum(q.series_days for q in quiet)
        false = sum(len(q.false) for q in quiet)
        found |= {"clean_series_days": round(days, 1), "clean_false_alerts": false}
        found["false_alerts_per_100_series_days"] = round(100 * false / days, 4)
    if rack is not None:
        found |= {"rack_cards": rack.cards, "rack_cards_told_of": rack.alerted, "rack_incidents": rack.incidents}
    if changes is not None:
        found["false_alerts_of_changes"] = changes
    if swept is not None:
        found |= _swept(swept, sweep_ets)
    return found | {f"{name}_skipped": why for name, why in skipped.items()}


def _accuracy(of: Scored) -> Figures:
    """The whole corpus, each of its parts, and the windows whose future holds nothing that was done from outside.

    Where nothing is forecast (too little since the last change of level) the point counts as naive, and there is no band to judge.
    """
    windows = of.windows
    scaled = np.isfinite(of.mase["naive"])
    every = np.ones(len(windows), dtype=np.bool_)
    found = _of_rows(of, every, "")
    found |= {"windows": len(windows), "windows_without_scale": int((~scaled).sum()), "windows_unsaid": int((~of.said).sum())}
    found["band_proven_share"] = round(float((of.level >= 0.9).mean()), 4)
    found["cpu_ms_per_series"] = round(1e3 * of.seconds / len(windows), 3)
    for part in np.unique(windows.part).tolist():
        found |= _of_rows(of, windows.part == part, f"_{part}")
    found |= _of_rows(of, windows.part != "nab", "_fleet")
    found |= _of_rows(of, ~windows.told, "_undisturbed")
    found |= _of_rows(of, (windows.part == "memory_used_bytes") & ~windows.told, "_memory_undisturbed")
    found |= _of_rows(of, windows.changed & ~windows.told, "_memory_after_change")
    found["windows_disturbed"] = int((windows.told & scaled).sum())
    for model, times in of.models.most_common():
        found[f"chosen_{model}_share"] = round(times / max(1, of.models.total()), 4)
    return found


def _of_rows(of: Scored, rows: NDArray[np.bool_], end: str) -> Figures:
    if not rows.any() or not np.isfinite(of.mase["naive"][rows]).any():
        return {}
    mean = {name: float(np.nanmean(mase[rows])) for name, mase in of.mase.items()}
    return {
        f"mase_mean{end}": round(mean["ours"], 4),
        f"mase_median{end}": round(float(np.nanmedian(of.mase["ours"][rows])), 4),
        f"mase_mean_naive{end}": round(mean["naive"], 4),
        f"mase_mean_predict_linear{end}": round(mean["predict_linear"], 4),
        f"mase_mean_hindsight{end}": round(mean["hindsight"], 4),
        f"mase_ratio_to_predict_linear{end}": round(mean["predict_linear"] / mean["ours"], 4),
        f"mase_ratio_hindsight_to_predict_linear{end}": round(mean["predict_linear"] / mean["hindsight"], 4),
        f"relative_mase_to_naive{end}": round(relative(of.mase["ours"][rows], of.mase["naive"][rows]), 4),
        f"relative_mase_to_predict_linear{end}": round(relative(of.mase["ours"][rows], of.mase["predict_linear"][rows]), 4),
        f"coverage_90{end}": round(float(of.inside[rows & of.said].mean()), 4),
    }


def _beside(of: Scored, ets: AutoEts) -> Figures:
    return {
        "autoets_windows": len(ets.rows),
        "autoets_failed": ets.failed,
        "autoets_mase_mean": round(float(np.nanmean(ets.mase)), 4),
        "mase_mean_on_autoets_windows": round(float(np.nanmean(of.mase["ours"][ets.rows])), 4),
        "relative_mase_to_autoets": round(relative(of.mase["ours"][ets.rows], ets.mase), 4),
        "autoets_coverage_90": round(ets.coverage, 4),
        "coverage_90_on_autoets_windows": round(float(of.inside[ets.rows][of.said[ets.rows]].mean()), 4),
        "autoets_cpu_ms_per_series": round(1e3 * ets.seconds_each, 2),
        "cpu_ratio_to_autoets": round(ets.seconds_each / (of.seconds / len(of.windows)), 2),
    }


def _foretold(told: Sequence[Told]) -> Figures:
    faults = [item for of in told for item in of.faults]
    found: Figures = {}
    leads = []
    for name in dict.fromkeys(fault.kind.name for fault, _ in faults):
        own = [(fault, at) for fault, at in faults if fault.kind.name == name]
        lead = [fault.crossed - at for fault, at in own if at is not None and fault.crossed is not None]
        leads += lead
        found[f"fault_recall_{name}"] = round(len(lead) / len(own), 4)
        found[f"median_lead_minutes_{name}"] = round(float(np.median(lead)), 2) if lead else 0.0
        found[f"faults_{name}"] = len(own)
    true, false = sum(of.true for of in told), sum(len(of.false) for of in told)
    found["faults"] = len(faults)
    found["fault_recall"] = round(len(leads) / max(1, len(faults)), 4)
    found["fault_precision"] = round(true / max(1, true + false), 4)
    found["fault_alerts_true"], found["fault_alerts_false"] = true, false
    found["median_lead_minutes"] = round(float(np.median(leads)), 2) if leads else 0.0
    found["lead_minutes_p10"] = round(float(np.quantile(leads, 0.1)), 2) if leads else 0.0
    return found


def _swept(swept: Swept, ets: AutoEts | None) -> Figures:
    each = swept.seconds / swept.series
    found: Figures = {
        "sweep_series": swept.series,
        "sweep_candidates": swept.candidates,
        "sweep_predicted": swept.predicted,
        "sweep_seconds": round(swept.seconds, 2),
        "sweep_screening_seconds": round(swept.screening_seconds, 3),
        "sweep_10000_series_s": round(10_000 * each, 2),
        "sweep_10000_series_on_two_free_cores_s": round(10_000 * swept.cpu_seconds / CORES / swept.series, 2),
    }
    if ets is not None:
        found["sweep_autoets_sample"] = len(ets.rows)
        found["sweep_autoets_extrapolated_s"] = round(10_000 * ets.seconds_each / CORES, 1)
        # Both by CPU: what else the machine does meanwhile is in neither.
        found["sweep_ratio_to_autoets"] = round(ets.seconds_each * swept.series / swept.cpu_seconds, 2)
    return found


def tables(found: Figures) -> Group:
    """What `figures` says, for people."""
    shown: list[Table | Text] = [_goals(found)]
    if "mase_mean" in found:
        shown.append(_parts(found))
    if "faults" in found:
        table = Table(title="faults put into the fleet", title_justify="left")
        for heading in ("", "faults", "foretold", "median lead, min"):
            table.add_column(heading, justify="right" if heading else "left")
        for name in (key.removeprefix("fault_recall_") for key in found if key.startswith("fault_recall_")):
            table.add_row(name, *(str(found[f"{key}_{name}"]) for key in ("faults", "fault_recall", "median_lead_minutes")))
        shown.append(table)
    anchors = Table(title="published and measured elsewhere", title_justify="left", show_header=False)
    for name, text in ANCHORS:
        anchors.add_row(name, text)
    shown.append(anchors)
    shown += [
        Text(f"skipped {key.removesuffix('_skipped')}: {why}", style="yellow") for key, why in found.items() if key.endswith("_skipped")
    ]
    return Group(*shown)


def _goals(found: Figures) -> Table:
    table = Table(title="bench-forecast", title_justify="left")
    for heading in ("", "here", "goal (issue 5)"):
        table.add_column(heading, justify="right" if heading == "here" else "left")
    for name in ("mase_mean", *GOALS, "sweep_ratio_to_autoets"):
        if name in found:
            table.add_row(name, str(found[name]), GOALS.get(name, ""))
    return table


def _parts(found: Figures) -> Table:
    table = Table(
        title="errors scaled by the mean one-step change of all that came before (MASE); what never moved has no scale and is left out",
        title_justify="left",
    )
    headings = {
        "mase_mean": "ours",
        "mase_mean_naive": "naive",
        "mase_mean_predict_linear": "predict_linear",
        "mase_mean_hindsight": "hindsight",
        "mase_ratio_to_predict_linear": "times below it",
        "mase_ratio_hindsight_to_predict_linear": "hindsight",
        "relative_mase_to_naive": "geometric mean to naive",
        "coverage_90": "coverage",
    }
    for heading in ("", *headings.values()):
        table.add_column(heading, justify="right" if heading else "left")
    for key in found:
        if key.startswith("mase_mean_naive") and (not key.endswith("_steps") or key.startswith(_SHORT)):
            end = key.removeprefix("mase_mean_naive")
            table.add_row(end.replace("_", " ").strip() or "all", *(f"{found[h + end]:.3f}" for h in headings))
    return table
