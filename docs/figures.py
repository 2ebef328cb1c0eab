"""Puts the figures of the last benchmark runs into the guides: `python -m docs.figures` reads bench/out/*.json and fills their blocks.

A block begins with `<!-- figures: NAME -->` and ends with `<!-- end -->`. Figures are dated and of one machine, so nothing checks that they
are new; a benchmark that was not run leaves its block as it is.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DOCS: Final = Path(__file__).parent
OUT: Final = DOCS.parent / "bench" / "out"
UNKNOWN: Final = "·"

Figures = dict[str, Any]


def main() -> int:
    for page in sorted((DOCS / "guide").glob("*.md")):
        said = page.read_text(encoding="utf-8")
        now = filled(said, OUT)
        if now != said:
            page.write_text(now, encoding="utf-8")
            click.echo(f"{page.relative_to(DOCS.parent)}: filled", err=True)
    return 0


def filled(page: str, out: Path) -> str:
    """The page with each block whose benchmark has run. Raises KeyError for a block of no benchmark."""

    def block(match: re.Match[str]) -> str:
        make = BLOCKS[match[1]]
        file = out / f"{match[1]}.json"
        if not file.is_file():
            return match[0]
        date = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        text = make(json.loads(file.read_text(encoding="utf-8")))
        return f"<!-- figures: {match[1]} -->\n\nMeasured {date:%Y-%m-%d}.\n\n{text}\n\n<!-- end -->"

    return re.sub(r"<!-- figures: ([\w-]+) -->.*?<!-- end -->", block, page, flags=re.DOTALL)


def nab(found: Figures) -> str:
    """Published rows: the project's README; the last column recomputed from its stored scores."""
    published = (
        ("ARTime", "74.9", "65.2", "80.4", "71.3"),
        ("Numenta HTM", "70.1", "63.1", "74.3", "70.1"),
        ("CAD OSE", "69.9", "67.0", "73.2", "67.8"),
        ("Random Cut Forest", "51.7", "38.4", "59.7", "58.4"),
        ("Windowed Gaussian", "39.6", "20.9", "47.4", "29.6"),
    )
    ours = ("**XPulse**, shipped defaults", *(_number(found, name, 1) for name in ("standard", "low_fp", "low_fn", "hardware_subset")))
    heads = ("", "standard", "low false positives", "low false negatives", "21 hardware-like series")
    speed = _number(found, "points_per_second_core", 0, 1e-6, digits=2)
    return "\n".join(
        (
            _table(heads, ours, *published),
            "",
            f"With the threshold that is best on the other 37 series, the 21 score {_number(found, 'transfer', 1)}.",
            f"{speed} million points a second on one core, {_number(found, 'ratio_to_hst', 0)} times as many as river's half-space trees.",
        )
    )


def fleet(found: Figures) -> str:
    return _table(
        ("", "recall", "precision", "median delay", "false findings per 100 device-days, clean", "findings per fault"),
        (
            "**XPulse**, shipped rules",
            _number(found, "recall", 2),
            _number(found, "precision", 2),
            f"{_number(found, 'median_delay_s', 0)} s",
            _number(found, "false_per_100_device_days", 2),
            _number(found, "findings_per_fault", 2),
        ),
        ("asked", "", "", "", "≤ 1", "≤ 2"),
    )


def forecast(found: Figures) -> str:
    rows = (
        ("mean MASE", _number(found, "mase_mean", 2), ""),
        ("mean MASE of `predict_linear` over ours", f"{_number(found, 'mase_ratio_to_predict_linear', 1)} ×", "asked: ≥ 5 ×"),
        (
            "the same for the best model of each window, chosen afterwards",
            f"{_number(found, 'mase_ratio_hindsight_to_predict_linear', 1)} ×",
            "bounds a chooser among our models, not every forecaster",
        ),
        (
            "GPU memory, without windows in whose future something is loaded or freed",
            f"{_number(found, 'mase_ratio_to_predict_linear_memory_undisturbed', 0)} ×",
            "few windows make it; all memory windows: " + f"{_number(found, 'mase_ratio_to_predict_linear_memory_used_bytes', 1)} ×",
        ),
        ("geometric mean error relative to naive", _number(found, "relative_mase_to_naive", 2), "asked: ≤ 0.95"),
        ("coverage of the 90 % interval", f"{_number(found, 'coverage_90', 1, 100)} %", "asked: 86 to 94 %"),
        ("recall of injected faults", _number(found, "fault_recall", 2), "asked: ≥ 0.95"),
        ("precision", _number(found, "fault_precision", 2), "asked: ≥ 0.9"),
        ("median lead, ramps of 30 to 60 min", f"{_number(found, 'median_lead_minutes', 0)} min", "asked: ≥ 15 min"),
        ("false alerts per 100 series-days, clean", _number(found, "false_alerts_per_100_series_days", 2), "asked: ≤ 0.2"),
        ("sweep of 10,000 series on two cores", f"{_number(found, 'sweep_10000_series_s', 1)} s", "asked: ≤ 60 s"),
        ("time of `statsforecast` AutoETS over ours", f"{_number(found, 'sweep_ratio_to_autoets', 0)} ×", ""),
    )
    return _table(("", "XPulse", "beside it"), *rows)


BLOCKS: Final[Mapping[str, Callable[[Figures], str]]] = {"nab": nab, "fleet": fleet, "forecast": forecast}


def _number(found: Figures, name: str, decimals: int, times: float = 1.0, *, digits: int | None = None) -> str:
    """The figure, or a dot where it was not measured."""
    value = found.get(name)
    if not isinstance(value, int | float):
        return UNKNOWN
    return f"{value * times:,.{decimals if digits is None else digits}f}"


def _table(heads: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    lines = (heads, ("---",) * len(heads), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
