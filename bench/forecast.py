"""How good forecasts are, what they foretell and what they cost: `python -m bench.forecast` (`make bench-forecast`).

Three parts: accuracy and coverage on NAB's hardware-like series and the simulated fleet, beside naive, Prometheus' predict_linear and
AutoETS on the same windows; faults put into simulated fleets, foretold by the shipped roles; a round over 10,000 series.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench import forecast_corpus as corpus
from bench import forecast_faults as faults
from bench import forecast_sweep as sweeping
from bench.forecast_accuracy import AutoEts, Scored, autoets, scored
from bench.forecast_corpus import Windows
from bench.forecast_faults import Quiet, Rack, Told
from bench.forecast_report import Figures, figures, tables
from bench.forecast_sweep import Swept
from forecasting.settings import Forecasting

OUT: Final = Path(__file__).parent / "out" / "forecast.json"
PARTS: Final = ("accuracy", "faults", "sweep")
LONG_HORIZON: Final = 72
"""That of the measurements in analytics.md §2.1; the shipped one is shorter."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    fleet_seeds: int
    fleet_hours: int
    fleet_origins: int
    nab_origins: int
    autoets: int
    fault_seeds: int
    clean_seeds: int
    clean_hours: int
    clean_nodes: int
    rack_nodes: int
    series: int
    processes: int


FULL: Final = Size(5, 36, 4, 24, 200, 200, 3, 24, 8, 8, sweeping.SERIES, 2)
QUICK: Final = Size(1, 24, 2, 6, 12, 2, 1, 4, 1, 1, 600, 2)


@dataclass(slots=True)
class Found:
    """What was measured; None or empty where it was not asked for."""

    scored: dict[int, Scored] = field(default_factory=dict)
    autoets: AutoEts | None = None
    told: list[Told] = field(default_factory=list)
    quiet: list[Quiet] = field(default_factory=list)
    rack: Rack | None = None
    changes: int | None = None
    swept: Swept | None = None
    sweep_autoets: AutoEts | None = None
    skipped: dict[str, str] = field(default_factory=dict)


def windows(size: Size, horizon: int, found: Found) -> Windows:
    """NAB's series, where they are there, and the fleet's."""
    parts = []
    try:
        parts.append(corpus.cut(corpus.nab_series(), "nab", size.nab_origins, horizon))
    except FileNotFoundError:
        found.skipped["nab"] = f"no data at {corpus.NAB.name} beside the repository (shared/data/nab)"
    fleets = _fleets(size)
    for metric in corpus.METRICS:
        series = {f"{seed}/{card}": y for seed, fleet in enumerate(fleets) for card, y in enumerate(fleet[metric])}
        parts.append(corpus.cut(series, metric, size.fleet_origins, horizon, memory=metric == "memory_used_bytes"))
    return corpus.joined(parts)


_MADE: dict[Size, list[dict[str, Any]]] = {}


def _fleets(size: Size) -> list[dict[str, Any]]:
    if size not in _MADE:
        _MADE[size] = [corpus.fleet_series(seed, nodes=1, hours=size.fleet_hours) for seed in range(size.fleet_seeds)]
    return _MADE[size]


def accuracy(size: Size, found: Found, progress: Progress) -> None:
    task = progress.add_task("simulating the fleet's series", total=None)
    for horizon in (LONG_HORIZON, Forecasting().horizon_steps):
        cut = windows(size, horizon, found)
        progress.update(task, description=f"accuracy, {horizon} steps ahead", total=len(cut), completed=0)
        found.scored[horizon] = scored(cut, horizon, lambda n: progress.advance(task, n))
    cut = found.scored[LONG_HORIZON].windows
    task = progress.add_task("AutoETS on the same windows", total=size.autoets)
    try:
        found.autoets = autoets(cut, LONG_HORIZON, size.autoets, lambda n: progress.advance(task, n))
    except ModuleNotFoundError as missing:
        found.skipped["autoets"] = str(missing)


def foretold(size: Size, found: Found, progress: Progress) -> None:
    """Seeds are independent of one another; with several processes they run side by side."""
    seeds = list(range(size.fault_seeds))
    together = min(faults.TOGETHER, max(1, size.fault_seeds))
    work: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        ("injected faults", faults.injected, (seeds[i : i + together],)) for i in range(0, len(seeds), together)
    ]
    work += [("clean days", faults.clean, (1_000 + n, size.clean_hours, size.clean_nodes)) for n in range(size.clean_seeds)]
    work += [("a rack", faults.rack, (3_000, size.rack_nodes)), ("loads, resizes, partitions", faults.changes, (4_000,))]
    task = progress.add_task("faults", total=len(work))

    def keep(result: Any) -> None:
        match result:
            case Told():
                found.told.append(result)
            case Quiet():
                found.quiet.append(result)
            case Rack():
                found.rack = result
            case int():
                found.changes = result
        progress.advance(task)

    if size.processes == 1:
        for name, function, arguments in work:
            progress.update(task, description=name)
            keep(function(*arguments))
        return
    with ProcessPoolExecutor(size.processes) as pool:
        running: list[Future[Any]] = [pool.submit(function, *arguments) for _, function, arguments in work]
        for done in as_completed(running):
            keep(done.result())


def swept(size: Size, found: Found, progress: Progress) -> None:
    y = sweeping.mixed(size.series, corpus.HISTORY, 1)
    task = progress.add_task(f"a round over {len(y):,} series", total=len(y))
    found.swept = sweeping.sweep(y, lambda n: progress.advance(task, n))
    horizon = Forecasting().horizon_steps
    nothing = np.zeros(len(y), dtype=np.bool_)
    names = np.full(len(y), "sweep")
    cut = Windows(y, np.repeat(y[:, -1:], horizon, axis=1), names, names, nothing, nothing, np.ones(len(y)))
    task = progress.add_task("AutoETS on some of them", total=size.autoets)
    try:
        found.sweep_autoets = autoets(cut, horizon, size.autoets, lambda n: progress.advance(task, n))
    except ModuleNotFoundError as missing:
        found.skipped["autoets"] = str(missing)


def measure(size: Size, parts: Sequence[str], progress: Progress) -> Found:
    """Everything that was asked for."""
    found = Found()
    for name, part in (("sweep", swept), ("accuracy", accuracy), ("faults", foretold)):
        if name in parts:
            part(size, found, progress)
    return found


def result(found: Found) -> Figures:
    return figures(
        found.scored,
        LONG_HORIZON,
        found.autoets,
        found.told,
        found.quiet,
        found.rack,
        found.changes,
        found.swept,
        found.sweep_autoets,
        found.skipped,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0; the figures are judged by who reads them, and the floors by a test."""
    parser = argparse.ArgumentParser(prog="python -m bench.forecast", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a small part of everything, in under a minute")
    parser.add_argument("--seeds", type=int, help="seeds of injected faults (default 200)")
    parser.add_argument("--out", type=Path, default=OUT, help="where the figures are written (default bench/out/forecast.json)")
    asked = parser.parse_args(arguments)
    size = QUICK if asked.quick else FULL
    if asked.seeds:
        size = Size(**{**{name: getattr(size, name) for name in Size.__slots__}, "fault_seeds": asked.seeds})
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as progress:
        found = measure(size, asked.only, progress)
    shown = result(found)
    # a pipe has no width, and a table in eighty columns cannot be read
    Console(width=None if sys.stdout.isatty() else 150).print(tables(shown))
    shown |= {"cores": os.cpu_count() or 0, "load_average_1m": round(os.getloadavg()[0], 2)}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
