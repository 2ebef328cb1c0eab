"""The figures of a run of the line: flat, for a file, and as tables of ratios for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from bench.case import Outcome
    from bench.ceilings import Rate

FLOOR_PER_SECOND = 20_000
"""Device samples a second on two cores with the direct runner, embedded bus and store: what a change must not fall below."""

_STORES = frozenset({"sqlite", "influxdb"})

Figures = dict[str, float | int | str]


def figures(outcomes: Sequence[Outcome], ceilings: Mapping[str, Rate], skipped: Mapping[str, str], machine: Figures) -> Figures:
    """Every figure under one flat name; rates are a second, CPU is µs a device sample."""
    found: Figures = dict(machine)
    for name, rate in ceilings.items():
        found[f"{name}_per_second"] = round(rate.per_second)
        found[f"{name}_cpu_us"] = round(rate.cpu_us, 2)
    for outcome in outcomes:
        name = outcome.case.name.replace("-", "_")
        found[f"{name}_samples_per_second"] = round(outcome.per_second)
        found[f"{name}_samples_per_second_by_cpu_on_two_cores"] = round(outcome.on_two_cores)
        found[f"{name}_samples"] = outcome.samples
        found[f"{name}_missing"] = outcome.missing
        found[f"{name}_owner_unknown"] = outcome.owner_unknown
        found[f"{name}_findings"] = outcome.findings
        found[f"{name}_seconds"] = round(outcome.seconds, 3)
        found[f"{name}_whole"] = int(outcome.whole)
        for process, us in outcome.cpu_us.items():
            found[f"{name}_cpu_us_per_sample_{'store' if process in _STORES else process}"] = round(us, 2)
        found[f"{name}_cpu_us_per_sample"] = round(sum(outcome.cpu_us.values()), 2)
        found[f"{name}_cpu_us_per_sample_roles"] = round(_of_roles(outcome), 2)
        if (raw := ceilings.get(_raw(outcome))) is not None:
            found[f"{name}_ratio_to_raw"] = round(outcome.per_second / raw.per_second, 4)
    for name, why in skipped.items():
        found[f"{name.replace('-', '_')}_skipped"] = why
    return found


def tables(outcomes: Sequence[Outcome], ceilings: Mapping[str, Rate], skipped: Mapping[str, str]) -> Group:
    """What `figures` says, for people."""
    shown = []
    if outcomes:
        line = Table(title="the line: device samples through attribute, detect, alert and the store", title_justify="left")
        for heading in (
            "",
            "samples/s",
            "of the floor",
            "2 free cores, by CPU",
            "of raw writes",
            "missing",
            "unknown owner",
            "findings",
            "alert records",
        ):
            line.add_column(heading, justify="left" if not heading else "right")
        for outcome in outcomes:
            raw = ceilings.get(_raw(outcome))
            line.add_row(
                outcome.case.name,
                f"{outcome.per_second:,.0f}",
                f"{outcome.per_second / FLOOR_PER_SECOND:.2f}",
                f"{outcome.on_two_cores:,.0f}",
                "–" if raw is None else f"{outcome.per_second / raw.per_second:.3f}",
                f"{outcome.missing:,}",
                f"{outcome.owner_unknown:,}",
                f"{outcome.findings:,}",
                f"{outcome.alert_records:,}",
            )
        shown += [line, _cpu(outcomes)]
    if ceilings:
        below = Table(title="ceilings: the parts beneath, alone", title_justify="left")
        for heading in ("", "a second", "CPU µs each"):
            below.add_column(heading, justify="left" if not heading else "right")
        for name, rate in ceilings.items():
            below.add_row(name.replace("_", " "), f"{rate.per_second:,.0f}", f"{rate.cpu_us:.1f}")
        shown.append(below)
    return Group(*shown, *(Text(f"skipped {name}: {why}", style="yellow") for name, why in skipped.items()))


def _cpu(outcomes: Sequence[Outcome]) -> Table:
    names: list[str] = []
    for outcome in outcomes:
        names += [name for name in outcome.cpu_us if name not in names]
    cpu = Table(title="CPU, µs a device sample", title_justify="left")
    cpu.add_column("")
    for name in (*names, "roles", "all"):
        cpu.add_column(name, justify="right")
    for outcome in outcomes:
        cells = [f"{outcome.cpu_us[name]:.1f}" if name in outcome.cpu_us else "–" for name in names]
        cpu.add_row(outcome.case.name, *cells, f"{_of_roles(outcome):.1f}", f"{sum(outcome.cpu_us.values()):.1f}")
    return cpu


def _of_roles(outcome: Outcome) -> float:
    """Without the producer, which stands for the agents, and without broker and database."""
    return sum(outcome.cpu_us[role] for role in ("attribute", "detect", "alert", outcome.case.store))


def _raw(outcome: Outcome) -> str:
    return "influx_raw_lines" if outcome.case.store == "influxdb" else "sqlite_raw_rows"
