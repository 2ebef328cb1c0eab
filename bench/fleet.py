"""The second yardstick: the shipped detectors on a simulated fleet of 64 cards, with every fault of the simulator and without any.

Each seed is two simulated days: one on which every kind of fault happens once (`bench.fleet_plan`), and one with diurnal load, restarts,
deploys and idle nights only. `make bench-fleet` takes 20 seeds; `--quick` a few hours of two.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench.fleet_plan import KINDS, Kind, Shape, Truth, broken, clean
from bench.fleet_report import tables
from bench.fleet_run import Day, run
from bench.fleet_score import Figures, Score

OUT: Final = Path(__file__).parent / "out" / "fleet.json"
SEEDS: Final = 20
FULL: Final = Shape()
_SHORT: Final = (
    "thermal",
    "cooling_loss",
    "power_brake",
    "ecc_burst",
    "device_lost",
    "driver_hang",
    "ghost",
    "recovery_pending",
    "pcie_replays",
)
QUICK: Final = Shape(
    nodes=4,
    hours=4.0,
    quiet_hours=0.75,
    kinds=tuple(Kind(k.name, min(k.shortest, 4), min(k.longest, 6), k.scope) for k in KINDS if k.name in _SHORT and k.scope != "source"),
)
QUICK_SEEDS: Final = 2


TOGETHER: Final = 4
"""Seeds whose days are watched together: the roles take in 500 cards almost as fast as 64."""


class Done(NamedTuple):
    """The two days of a seed, and what happened on the second."""

    seed: int
    clean: Day
    broken: Day
    truths: list[Truth]


def simulate(seeds: Sequence[int], shape: Shape, *, models: bool = False) -> list[Done]:
    """Both days of each seed; a process of the pool runs it."""
    calm = [clean(seed, shape) for seed in seeds]
    plans = [broken(seed, shape) for seed in seeds]
    days = run([*calm, *(fleet for fleet, _ in plans)], shape.seconds, models=models)
    return [
        Done(seed, quiet, loud, truths)
        for seed, quiet, loud, (_, truths) in zip(seeds, days[: len(seeds)], days[len(seeds) :], plans, strict=True)
    ]


def score(shape: Shape, seeds: Sequence[int], *, processes: int, models: bool, progress: Progress) -> Score:
    """All days of the seeds, judged in the order of the seeds."""
    size = min(TOGETHER, -(-len(seeds) // processes))
    groups = [seeds[n : n + size] for n in range(0, len(seeds), size)]
    task = progress.add_task(f"0 of {len(seeds)} seeds", total=len(seeds))
    done: list[Done] = []
    with ProcessPoolExecutor(processes) as pool:
        for future in as_completed([pool.submit(simulate, group, shape, models=models) for group in groups]):
            done += future.result()
            progress.update(task, completed=len(done), description=f"{len(done)} of {len(seeds)} seeds")
    found = Score()
    for one in sorted(done, key=lambda d: d.seed):
        found.add_clean(one.seed, one.clean, shape.device_days)
        found.add_broken(one.seed, one.broken, one.truths)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """0, always: the figures are judged by tests and people."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="two seeds, a few hours of 32 cards, the short faults")
    parser.add_argument("--seeds", type=int, help=f"how many (default {SEEDS}; with --quick {QUICK_SEEDS})")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="days simulated side by side (default: a core each)")
    parser.add_argument("--out", type=Path, default=OUT, help="where the figures are written (default bench/out/fleet.json)")
    parser.add_argument("--models", action="store_true", help="also run slow_card_of_model (a shadow rule), which takes most of the time")
    parser.add_argument("--each", action="store_true", help="also print each fault that was missed and each false finding")
    asked = parser.parse_args(arguments)
    shape = QUICK if asked.quick else FULL
    seeds = range(asked.first, asked.first + (asked.seeds or (QUICK_SEEDS if asked.quick else SEEDS)))
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(40), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=2) as progress:
        found = score(shape, seeds, processes=asked.processes, models=asked.models, progress=progress)
    figures = found.figures()
    # A pipe has no width, and a table in eighty columns cannot be read.
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(tables(found, figures))
    if asked.each:
        _each(found, console)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps({**_machine(shape, seeds), **figures}, indent=2) + "\n", encoding="utf-8")
    return 0


def _each(found: Score, console: Console) -> None:
    for case in found.cases:
        if case.delay_seconds is None:
            truth = case.truth
            console.print(f"missed: seed {case.seed} {truth.kind} {truth.start_seconds}..{truth.end_seconds} s")
    for seed, was_clean, r in found.false:
        day = "clean" if was_clean else "faults"
        console.print(f"false: seed {seed} {day} {r.seconds:.0f} s {r.rule} {r.entity} {r.metric} {r.detector} {r.value:.4g} {r.score:.3f}")


def _machine(shape: Shape, seeds: Sequence[int]) -> Figures:
    return {
        "seeds": len(seeds),
        "devices": shape.nodes * shape.devices,
        "hours": shape.hours,
        "cores": os.cpu_count() or 0,
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    sys.exit(main())
