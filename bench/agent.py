"""bench-agent: what a node pays for being watched, beside nvitop-exporter, all-smi and the bare NVML calls, on one fake driver.

`make bench-agent` starts each exporter on the same fake libnvidia-ml with eight H100, lets it read once a second for a minute while it
is scraped every 15 s (Prometheus' usual) and then, for another minute, each second; it prints CPU a thousand readings, resident memory
and the number of series. `ARGS="--seconds 20"` is quicker, and leaves out what happens once a minute. Figures go to bench/out/agent.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.exporters import Exporter, Measured, NotThere, all_smi, measure, nvitop, xpulse
from xpulse.testing.nvml import NoCompiler, Process, State, build

OUT: Final = Path("bench/out/agent.json")
GPUS: Final = 8
CALL_MICROSECONDS: Final = 20
"""What a call is given where nobody has measured it on a real driver: none of our captures tells a latency."""

WARM_SECONDS: Final = 5.0
SCRAPE_SECONDS: Final = 15.0
EACH_SECOND: Final = 1.0
GOAL_RATIO_TO_BARE: Final = 1.2
GOAL_CORE_SHARE: Final = 0.01
GOAL_RESIDENT_MB: Final = 80.0
_KINDS: Final = (
    ("process lists", "Process"),
    ("field batches", "FieldValues"),
    ("activity (GPM)", "Gpm"),
    ("links", "NvLink"),
    ("events", "Event"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench-agent", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each exporter is measured (60)")
    parser.add_argument("--cycles", type=int, default=2000, help="readings compared with the bare calls (2000)")
    parser.add_argument("--latency-us", type=int, default=CALL_MICROSECONDS, help=f"what each driver call takes ({CALL_MICROSECONDS})")
    parser.add_argument("--scrape-seconds", type=float, default=SCRAPE_SECONDS, help="how often each is scraped (15); also told for 1")
    parser.add_argument("--only", action="append", choices=("xpulse", "nvitop", "all-smi", "bare"), help="measure only these (repeatable)")
    options = parser.parse_args()
    # a pipe has no width, and a table in eighty columns cannot be read
    console = Console(width=None if sys.stdout.isatty() else 150)
    chosen = set(options.only or ("bare", "xpulse", "nvitop", "all-smi"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            library = build(folder / "library")
        except NoCompiler as error:
            console.print(f"[red]{error}[/red]")
            return 2
        state = State(folder / "nvml.json", "h100", count=GPUS)
        state.latency(options.latency_us)
        for index in range(GPUS):
            state.processes(index, [Process(pid=os.getpid(), memory_bytes=60 << 30)])
        figures: dict[str, Any] = {"gpus": GPUS, "call_us": options.latency_us, "seconds": options.seconds}
        figures["scrape_seconds"] = options.scrape_seconds
        if "bare" in chosen:
            console.print(f"reading against the bare calls, {options.cycles} cycles ...")
            figures |= reading(library, state.path, options.cycles)
        runs = {}
        for every in sorted({options.scrape_seconds, EACH_SECOND}, reverse=True):
            runs[every] = _exporters(console, chosen, library, state.path, folder, options.seconds, every)
    for every, (measured, skipped) in runs.items():
        suffix = "" if every == options.scrape_seconds else "_scraped_each_second"
        figures |= {f"{name}{suffix}": value for name, value in _figures(measured, skipped).items()}
        _show(console, figures if not suffix else {}, measured, skipped, f"{options.latency_us} µs a call, scraped every {every:g} s")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    console.print(f"written: {OUT}")
    return 0


def reading(library: Path, state: Path, cycles: int) -> dict[str, float]:
    """What `cycles` fast reads of all cards cost beside the bare calls, as figures of bench/out/agent.json."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(state)}
    done = subprocess.run(
        [sys.executable, "-m", "bench.agent_reading", str(cycles)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"bench.agent_reading: {done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    return {
        "cpu_ratio_to_bare_nvml": round(found["read_cpu_us"] / found["bare_cpu_us"], 3),
        "cpu_us_above_bare_per_gpu": round((found["read_cpu_us"] - found["bare_cpu_us"]) / GPUS, 1),
        "wall_ms_per_cycle": round(found["read_wall_us"] / 1000, 3),
        "bare_wall_ms_per_cycle": round(found["bare_wall_us"] / 1000, 3),
        "calls_per_fast_cycle": sum(found["calls"].values()),
    }


def _exporters(
    console: Console, chosen: set[str], library: Path, state: Path, folder: Path, seconds: float, every: float
) -> tuple[list[Measured], dict[str, str]]:
    makers: dict[str, Callable[[], Exporter]] = {"xpulse": lambda: xpulse(folder), "nvitop": nvitop, "all-smi": lambda: all_smi(folder)}
    measured, skipped = [], {}
    for port, (name, make) in enumerate(((n, m) for n, m in makers.items() if n in chosen), 19710):
        console.print(f"{name}: {seconds:g} s at one reading a second, scraped every {every:g} s ...")
        try:
            one = measure(make(), library, state, folder, port=port, warm=WARM_SECONDS, seconds=seconds, every_seconds=every)
            measured.append(one)
        except NotThere as error:
            skipped[name] = str(error)
    return measured, skipped


def _figures(measured: list[Measured], skipped: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {f"{_flat(name)}_skipped": why for name, why in skipped.items()}
    ours = next((one for one in measured if one.name == "xpulse"), None)
    for one in measured:
        prefix = "" if one is ours else f"{_flat(one.name)}_"
        found[f"{prefix}cpu_seconds_per_1000_cycles"] = round(one.cpu_per_1000_cycles, 3)
        found[f"{prefix}resident_mb"] = round(one.resident_bytes / 1e6, 1)
        found[f"{prefix}series"] = one.series
        found[f"{prefix}process_series"] = one.process_series
        found[f"{prefix}metrics"] = one.metrics
        found[f"{prefix}calls_per_cycle"] = round(sum(one.calls.values()), 1)
        if ours is not None and one is not ours:
            found[f"cpu_ratio_to_{_flat(one.name)}"] = round(ours.cpu_seconds / ours.seconds / (one.cpu_seconds / one.seconds), 3)
    if ours is not None:
        found["core_share"] = round(ours.cpu_seconds / ours.seconds, 4)
        for kind, count in _by_kind(ours).items():
            found[f"calls_per_cycle_{_flat(kind)}"] = round(count, 2)
    return found


def _by_kind(one: Measured) -> dict[str, float]:
    """Calls a cycle by what they ask for; a kind is found by a word in the symbol."""
    found: dict[str, float] = {}
    for symbol, count in one.calls.items():
        kind = next((kind for kind, word in _KINDS if word in symbol), "single readings")
        found[kind] = found.get(kind, 0.0) + count
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _flat(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).strip("_").replace("__", "_").removesuffix("_exporter")


def _show(console: Console, figures: dict[str, Any], measured: list[Measured], skipped: dict[str, str], how: str) -> None:
    if "cpu_ratio_to_bare_nvml" in figures:
        ratio, above = figures["cpu_ratio_to_bare_nvml"], figures["cpu_us_above_bare_per_gpu"]
        console.print(
            f"reading {GPUS} GPUs costs {ratio} × the bare NVML calls (goal {GOAL_RATIO_TO_BARE}); {above} µs a GPU above them; "
            f"{figures['wall_ms_per_cycle']} ms a cycle, {figures['calls_per_fast_cycle']} calls"
        )
    if not measured and not skipped:
        return
    table = Table(title=f"{GPUS} H100 on one fake driver, {how}", title_justify="left")
    for heading in ("", "CPU s / 1,000 cycles", "ratio", "resident MB", "series", "of processes", "metrics", "NVML calls / cycle"):
        table.add_column(heading, justify="left" if not heading else "right")
    ours = next((one for one in measured if one.name == "xpulse"), None)
    for one in measured:
        ratio = "1" if one is ours or ours is None else f"{one.cpu_per_1000_cycles / ours.cpu_per_1000_cycles:.2f}"
        series = f"{one.series:,}", f"{one.process_series:,}"
        cells = (f"{one.resident_bytes / 1e6:.1f}", *series, f"{one.metrics}", f"{sum(one.calls.values()):,.0f}")
        table.add_row(one.name, f"{one.cpu_per_1000_cycles:.2f}", ratio, *cells)
    console.print(table)
    if ours is not None:
        share = ours.cpu_seconds / ours.seconds
        console.print(
            f"xpulse: {share:.2%} of a core (goal below {GOAL_CORE_SHARE:.0%}), {ours.resident_bytes / 1e6:.1f} MB in {ours.processes} "
            f"processes (goal below {GOAL_RESIDENT_MB:g})"
        )
        console.print("its calls a cycle: " + ", ".join(f"{kind} {count:.1f}" for kind, count in _by_kind(ours).items()))
    for name, why in skipped.items():
        console.print(f"[yellow]skipped {name}: {why}[/yellow]")


if __name__ == "__main__":
    sys.exit(main())
