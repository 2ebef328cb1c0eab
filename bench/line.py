"""How many device samples a second go through the whole line, and what each costs: `python -m bench.line` (`make bench-line`).

The real roles run as processes of their own, as under `xpulse up`; samples are published as fast as the line takes them in, and the
clock stops when the last one is attributed, detected and in the store. Each figure stands beside what the store and the bus can do
alone, measured in the same run: on a busy machine the ratios and the CPU a sample tell more than the rates.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench import case as line
from bench import ceilings
from bench.case import CASES, Case, Outcome
from bench.ceilings import Rate
from bench.load import Load, Shape, make
from bench.report import Figures, figures, tables
from bench.stack import EmbeddedBus
from tests.integration.servers.influxdb import InfluxServer
from tests.integration.servers.toolchain import Missing
from xpulse.bus.settings import Bus

FULL: Final = Shape(templates=8, replicas=32, devices=8, ticks=600)
QUICK: Final = Shape(templates=2, replicas=4, devices=8, ticks=40)
OUT: Final = Path(__file__).parent / "out" / "line.json"
CEILINGS: Final = "ceilings"
_ALL_SECONDS: Final = 600.0
NAMES: Final = (*(case.name for case in CASES), CEILINGS)

Ceiling = Callable[[Load, Path], Rate]


def _influx(load: Load, _: Path) -> Rate:
    points = ceilings.device_points(load)
    with InfluxServer() as server:
        return ceilings.raw_influx(server, points)


def _sqlite(load: Load, folder: Path) -> Rate:
    return ceilings.raw_sqlite(folder, ceilings.device_points(load))


def _consume(load: Load, folder: Path) -> Rate:
    with EmbeddedBus(folder) as bus:
        return ceilings.consume_only(Bus(brokers=bus.brokers, embedded=True), load)


_CEILINGS: Final[dict[str, tuple[str, Ceiling]]] = {
    "sqlite_raw_rows": ("embedded", _sqlite),
    "embedded_consume_only_samples": ("embedded", _consume),
    "influx_raw_lines": ("kafka", _influx),
}
"""Name of the figure, the bus whose cases it is compared with, and what measures it."""


class Session:
    """Measures what was asked for, shows how it goes, and keeps what it found."""

    def __init__(self, load: Load, seconds: float, progress: Progress) -> None:
        self.outcomes: list[Outcome] = []
        self.ceilings: dict[str, Rate] = {}
        self.skipped: dict[str, str] = {}
        self._load = load
        self._seconds = seconds
        self._progress = progress

    def measure(self, case: Case) -> None:
        task = self._progress.add_task(f"{case.name}: starting", total=self._seconds)

        def show(samples: int, seconds: float) -> None:
            rate = samples / seconds if seconds else 0.0
            text = f"{case.name}: {samples:,} device samples, {rate:,.0f}/s"
            self._progress.update(task, description=text, completed=min(seconds, self._seconds))

        with tempfile.TemporaryDirectory(prefix="xpulse-bench-") as folder:
            try:
                outcome = line.run(case, self._load, Path(folder), seconds=self._seconds, on_progress=show)
            except Missing as missing:
                self.skipped[case.name] = str(missing)
                self._progress.update(task, description=f"{case.name}: skipped", completed=self._seconds)
                return
        self.outcomes.append(outcome)
        self._progress.update(task, description=f"{case.name}: {outcome.per_second:,.0f} device samples/s", completed=self._seconds)

    def ceiling(self, name: str, measure: Ceiling) -> None:
        words = name.replace("_", " ")
        task = self._progress.add_task(f"ceiling: {words}", total=1)
        with tempfile.TemporaryDirectory(prefix="xpulse-bench-") as folder:
            try:
                self.ceilings[name] = measure(self._load, Path(folder))
            except Missing as missing:
                self.skipped[name] = str(missing)
                self._progress.update(task, description=f"ceiling: {words}: skipped", completed=1)
                return
        self._progress.update(task, description=f"ceiling: {words}: {self.ceilings[name].per_second:,.0f}/s", completed=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 where anything that was published is missing at the end."""
    parser = argparse.ArgumentParser(prog="python -m bench.line", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=float, help="how long each run publishes at most (default 15; with --quick: until all is sent)")
    parser.add_argument(
        "--quick", action="store_true", help="a small fleet and little of it: shows that all works, the figures mean nothing"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="where the figures are written (default bench/out/line.json)")
    asked = parser.parse_args(arguments)
    chosen = [case for case in CASES if case.name in asked.only]
    compared = {case.bus for case in chosen} or {"embedded", "kafka"}
    shape = QUICK if asked.quick else FULL
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=console, refresh_per_second=4) as progress:
        task = progress.add_task(f"simulating {shape.templates} of {shape.nodes} nodes", total=shape.ticks)
        load = make(shape, ends_at_ns=time.time_ns(), on_tick=lambda _: progress.advance(task))
        session = Session(load, asked.seconds or (_ALL_SECONDS if asked.quick else 15.0), progress)
        if CEILINGS in asked.only:
            for name, (bus, measure) in _CEILINGS.items():
                if bus in compared:
                    session.ceiling(name, measure)
        for case in chosen:
            session.measure(case)
    # a pipe has no width, and a table in eighty columns cannot be read
    Console(width=None if sys.stdout.isatty() else 150).print(tables(session.outcomes, session.ceilings, session.skipped))
    found = figures(session.outcomes, session.ceilings, session.skipped, _machine(shape))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0 if all(outcome.whole for outcome in session.outcomes) else 1


def _machine(shape: Shape) -> Figures:
    return {
        "cores": os.cpu_count() or 0,
        "load_average_1m": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "nodes": shape.nodes,
        "devices_per_node": shape.devices,
    }


if __name__ == "__main__":
    sys.exit(main())
