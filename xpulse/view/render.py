"""Draws a Screen with Rich. Everything users named is escaped; what is not known is a dot, never a zero."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from xpulse.logs import printable
from xpulse.view.model import AlertRow, DeviceRow, ForecastRow, Screen, StageRow

UNKNOWN = "·"
_SEVERITY = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
_STATE = {"ready": "green", "starting": "yellow", "waiting": "dim", "backing off": "bold red", "failed": "bold red", "stopped": "dim"}


def draw(screen: Screen, height: int = 50, width: int = 160) -> RenderableType:
    """The whole screen; devices are cut to what `height` lines leave, and what was cut is said. In a narrow window (`width` columns) what
    can be missed best goes, so that numbers are never cut."""
    most_alerts, most_forecasts = (8, 4) if height >= 40 else (3, 2) if height >= 30 else (2, 1)
    troubled = any(stage.restarts or stage.dead_letters for stage in screen.stages)
    in_a_row = 3 if width >= (150 if troubled else 120) else 2
    notes = screen.notes[-3:] if height >= 30 else screen.notes[-1:]
    used = 12 + -(-len(screen.stages) // in_a_row) + max(1, min(len(screen.forecasts), most_forecasts)) + len(notes)
    used += max(1, min(len(screen.alerts), most_alerts + 1))
    return Group(
        _head(screen, width),
        _devices(screen.devices, max(2, height - used), width),
        _alerts(screen.alerts, most_alerts, width),
        _forecasts(screen.forecasts[:most_forecasts]),
        _stages(screen.stages, in_a_row),
        *(Text(f" {printable(note)}", style="dim", no_wrap=True, overflow="ellipsis") for note in notes),
    )


def _head(screen: Screen, width: int) -> Text:
    """What must not be cut off stands first."""
    minutes, seconds = divmod(int(screen.seconds), 60)
    gap = "   " if width >= 120 else "  "
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(" XPulse ", "bold white on blue")
    if screen.simulated:
        head.append(" ")
        head.append(" SIMULATED ", "bold black on yellow")
    head.append(
        f"{gap}Ctrl-C stops{gap}{f'cluster {printable(screen.cluster)}{gap}' if width >= 100 else ''}up {minutes}:{seconds:02d}{gap}"
    )
    head.append(_many(len(screen.devices), "device"), "bold")
    others = sum(row.others for row in screen.alerts)
    incidents = f" in {_many(len(screen.alerts), 'incident')}" if others and width >= 100 else ""
    head.append(f"{gap}{_many(len(screen.alerts) + others, 'open alert')}{incidents}, {screen.resolved_total} resolved")
    head.append(f"{gap}memory {screen.memory_bytes / 2**20:.0f} MiB")
    return head


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _text(said: str) -> Text:
    """Text that somebody else chose. Rich would read markup in a plain string and refuse a closing tag without its opening one."""
    return Text(printable(said))


def bar(ratio: float | None, width: int = 8) -> Text:
    """A share as a bar and a percentage."""
    if ratio is None:
        return Text(UNKNOWN, style="dim")
    filled = round(min(max(ratio, 0.0), 1.0) * width)
    colour = "red" if ratio > 0.95 else "yellow" if ratio > 0.9 else "green"
    return Text.assemble(("█" * filled, colour), ("░" * (width - filled), "dim"), f" {ratio * 100:3.0f}%")


def _number(value: float | None, unit: str) -> Text:
    return Text(UNKNOWN, style="dim") if value is None else Text(f"{value:.0f} {unit}")


def _devices(rows: Sequence[DeviceRow], room: int, width: int) -> RenderableType:
    with_model, bar_width = width >= 110, 8 if width >= 96 else 4
    least = {"#": 2, "load": bar_width + 5, "memory": bar_width + 5, "temp": 6, "power": 6, "age": 4}
    padding = (0, 1, 0, 1 if width >= 96 else 0)
    table = Table(expand=True, box=None, pad_edge=False, header_style="bold", padding=padding)
    names = ("node", "#", *(("model",) if with_model else ()), "used by", "load", "memory", "temp", "power", "age")
    free = width - 4 - sum(least.values()) - len(names) * (padding[1] + padding[3])
    model = min(free // 4, max((cell_len(row.model) for row in rows), default=0)) if with_model else 0
    most = {"model": model, "used by": min(free - model - 12, max((cell_len(row.owner) for row in rows), default=0))}
    most["node"] = free - sum(most.values())  # a long name is cut, so that the numbers are not
    for name in names:
        right = name in ("#", "temp", "power", "age")
        table.add_column(
            name,
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=least.get(name),
            max_width=max(7, most[name]) if name in most else None,
        )
    several = len({row.cluster for row in rows}) > 1
    for row in rows[:room]:
        memory = row.memory_used_bytes / row.memory_total_bytes if row.memory_used_bytes is not None and row.memory_total_bytes else None
        table.add_row(
            _text(f"{row.cluster}/{row.node}" if several else row.node),
            UNKNOWN if row.index is None else str(row.index),
            *((_text(row.model),) if with_model else ()),
            Text(printable(row.owner) or UNKNOWN, style="" if row.owner not in ("", "idle") else "dim"),
            bar(row.utilization_ratio, bar_width),
            bar(memory, bar_width),
            _number(row.temperature_celsius, "°C"),
            _number(row.power_watts, "W"),
            Text(f"{row.age_seconds:.0f} s", style="bold red" if row.age_seconds > 15 else "dim"),
        )
    parts: list[RenderableType] = [table]
    if not rows:
        parts.append(Text("waiting for the first reading ...", style="dim"))
    if len(rows) > room:
        parts.append(Text(f"... and {len(rows) - room} more (make the window taller)", style="dim"))
    return Panel(Group(*parts), title="devices", title_align="left", border_style="dim")


def _alerts(rows: Sequence[AlertRow], most: int, width: int) -> RenderableType:
    """A row per incident, with the number of its other alerts. A narrow window has no column for the owner: the summary names it too."""
    with_owner = width >= 120
    with_others = any(row.others for row in rows[:most])
    table = Table(expand=True, box=None, pad_edge=False, show_header=False)
    table.add_column(min_width=8, no_wrap=True)
    for ratio in (3, 2, 2, 6) if with_owner else (None, None, 1):
        table.add_column(ratio=ratio, no_wrap=True, overflow="ellipsis")
    if with_others:
        table.add_column(min_width=max(len(f"+{row.others}") for row in rows[:most]), justify="right", no_wrap=True)
    table.add_column(min_width=6, justify="right", no_wrap=True)
    for row in rows[:most]:
        style = _SEVERITY.get(row.severity, "")
        table.add_row(
            Text(row.severity, style=style),
            Text(printable(row.rule), style=style),
            _text(row.where),
            *((_text(row.owner or UNKNOWN),) if with_owner else ()),
            _text(row.summary),
            *((Text(f"+{row.others}" if row.others else "", style=style),) if with_others else ()),
            f"{row.age_seconds:.0f} s",
        )
    if not rows:
        table.add_row(Text("none", style="green"))
    if len(rows) > most:
        table.add_row(Text(f"+{len(rows) - most}", style="dim"))
    return Panel(table, title="open alerts", title_align="left", border_style="red" if rows else "dim")


def _forecasts(rows: Sequence[ForecastRow]) -> RenderableType:
    table = Table(expand=True, box=None, pad_edge=False, show_header=False)
    for row in rows:
        table.add_row(*map(_text, (row.where, row.metric, f"limit in {row.eta}", f"{row.probability_ratio * 100:.0f} % sure", row.model)))
    if not rows:
        table.add_row(Text("nothing is heading for a limit", style="dim"))
    return Panel(table, title="forecasts", title_align="left", border_style="yellow" if rows else "dim")


def _stages(rows: Sequence[StageRow], in_a_row: int) -> RenderableType:
    table = Table(expand=True, box=None, pad_edge=False, show_header=False)
    for _ in range(in_a_row):
        table.add_column(no_wrap=True, overflow="ellipsis")
    cells = []
    for row in rows:
        rate = UNKNOWN if row.per_second is None else f"{row.per_second:.1f}/s"
        lag = UNKNOWN if row.lag is None else str(row.lag)
        cell = Text.assemble((f"{row.role:9} ", "bold"), (f"{row.state:8} ", _STATE.get(row.state, "")))
        if row.restarts:  # before the rate: where there is no room for all, trouble is seen
            cell.append(f"restarts {row.restarts} ", "bold yellow")
        if row.dead_letters:
            cell.append(f"dlq {row.dead_letters} ", "bold red")
        cell.append(f"{rate:>7} lag {lag}")
        cells.append(cell)
    for start in range(0, len(cells), in_a_row):
        table.add_row(*cells[start : start + in_a_row])
    return Panel(table, title="stages: rate in, lag", title_align="left", border_style="dim")
