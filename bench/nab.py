"""The Numenta Anomaly Benchmark with the shipped detectors and their defaults, and how many points a second a core judges.

All series go through `ensemble.score`, which is what the detect role calls, one tick after the other: no look-ahead, no labels, and no
constants for any one series. `--quick` takes the series of at most 5,000 points.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench import nab_corpus
from bench.nab_detect import detect
from bench.nab_report import Found, figures, tables
from bench.nab_scoring import Sheet
from bench.nab_speed import MANY, MESSAGE, SAMPLE_NS, SETTLE_TICKS, Speed, ensemble_rate, half_space_trees_rate, python_ewma_rate

OUT: Final = Path(__file__).parent / "out" / "nab.json"
QUICK_POINTS: Final = 5000
_TICKS: Final = 50
_PEER_POINTS: Final = 20_000


def measure(series: Sequence[nab_corpus.Series], progress: Progress, *, speed: bool, trust: bool) -> Found:
    """Everything that is asked for, with its progress shown."""
    longest = max(len(one.values) for one in series)
    task = progress.add_task(f"{len(series)} series, tick by tick", total=longest)
    detected = detect([(one.at_ns, one.values) for one in series], on_tick=lambda _: progress.advance(task))
    profiles = nab_corpus.profiles()
    trusted = {}
    if trust:
        sheet = Sheet([one.labelled for one in series])
        for name in nab_corpus.PUBLISHED:
            task = progress.add_task(f"the published scores of {name}", total=1)
            trusted[name] = sheet.best(nab_corpus.published(name, series), profiles["standard"])[0]
            progress.advance(task)
    return Found(series, detected, profiles, trusted, _speed(progress) if speed else None)


def _speed(progress: Progress) -> Speed:
    task = progress.add_task(f"speed: {MANY:,} series", total=SETTLE_TICKS + _TICKS)
    many = ensemble_rate(MANY, 1, _TICKS, lambda: progress.advance(task))
    task = progress.add_task(f"speed: {MANY:,} series, a sample a second", total=38 * _TICKS)
    sampled = ensemble_rate(MANY, 1, 2 * _TICKS, lambda: progress.advance(task), 36 * _TICKS, SAMPLE_NS)
    task = progress.add_task(f"speed: {MESSAGE} series", total=SETTLE_TICKS + 10 * _TICKS)
    message = ensemble_rate(8, MESSAGE // 8, 10 * _TICKS, lambda: progress.advance(task))
    task = progress.add_task("speed: one point at a time", total=2)
    trees = half_space_trees_rate(_PEER_POINTS)
    progress.advance(task)
    plain = python_ewma_rate(50 * _PEER_POINTS)
    progress.advance(task)
    return Speed(many, sampled, message, trees, plain)


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 2 where the data are not there."""
    parser = argparse.ArgumentParser(prog="python -m bench.nab", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help=f"only series of at most {QUICK_POINTS} points, no speed, no trust rows")
    parser.add_argument("--files", action="store_true", help="a row for each series, too")
    parser.add_argument("--no-speed", action="store_true", help="leave out how many points a second a core judges")
    parser.add_argument("--out", type=Path, default=OUT, help="where the figures are written (default bench/out/nab.json)")
    asked = parser.parse_args(arguments)
    console = Console(stderr=True)
    if (why := nab_corpus.missing()) is not None:
        console.print(why)
        return 2
    series = nab_corpus.load()
    if asked.quick:
        series = [one for one in series if len(one.values) <= QUICK_POINTS]
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=console, refresh_per_second=2) as progress:
        found = measure(series, progress, speed=not (asked.quick or asked.no_speed), trust=not asked.quick)
    said = figures(found)
    # a pipe has no width, and a table in eighty columns cannot be read
    Console(width=None if sys.stdout.isatty() else 150).print(tables(found, said, files=asked.files))
    said |= {
        "quick": int(asked.quick),
        "cores": os.cpu_count() or 0,
        "load_average_1m": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
