"""Draws a Screen with Rich. Everything users named is escaped; what is not known is a dot, never a zero."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from xpulse.logs import printable
from xpulse.view.model import AlertRow, DeviceRow, ForecastRow, Screen, StageRow

UNKNOWN = "·"
_SEVERITY = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
_STATE = {"ready": "green", "starting": "yellow", "waiting": "dim", "backing off": "bold red", "failed": "bold red", "stopped": "dim"}


def draw(screen: Screen, height: int = 50) -> RenderableType:
    """The whole screen; devices are cut to what `height` lines leave, and what was cut is said."""
    used = 9 + len(screen.stages) // 3 + max(1, len(screen.alerts[:8])) + max(1, len(screen.forecasts[:4])) + len(screen.notes[-3:])
    room = max(4, height - used - 6)
    parts: list[RenderableType] = [_head(screen), _devices(screen.devices, room), _alerts(screen.alerts), _forecasts(screen.forecasts)]
    parts.append(_stages(screen.stages))
    parts += [Text(f" {printable(note)}", style="dim") for note in screen.notes[-3:]]
    return Group(*parts)


def _head(screen: Screen) -> Text:
    minutes, seconds = divmod(int(screen.seconds), 60)
    head = Text.assemble(
        (" XPulse ", "bold white on blue"),
        f"  cluster {printable(screen.cluster)}   up {minutes}:{seconds:02d}   ",
        (f"{len(screen.devices)} devices", "bold"),
        f"   {len(screen.alerts)} open alerts, {screen.resolved_total} resolved   memory {screen.memory_bytes / 2**20:.0f} MiB",
    )
    if screen.simulated:
        head.append("   ")
        head.append(" SIMULATED ", "bold black on yellow")
    head.append("   Ctrl-C stops")
    return head


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


def _devices(rows: Sequence[DeviceRow], room: int) -> RenderableType:
    table = Table(expand=True, box=None, pad_edge=False, header_style="bold")
    for name in ("node", "#", "model", "used by", "load", "memory", "temp", "power", "age"):
        table.add_column(name, justify="right" if name in ("#", "temp", "power", "age") else "left", no_wrap=True, overflow="ellipsis")
    several = len({row.cluster for row in rows}) > 1
    for row in rows[:room]:
        memory = row.memory_used_bytes / row.memory_total_bytes if row.memory_used_bytes is not None and row.memory_total_bytes else None
        table.add_row(
            _text(f"{row.cluster}/{row.node}" if several else row.node),
            UNKNOWN if row.index is None else str(row.index),
            _text(row.model),
            Text(printable(row.owner) or UNKNOWN, style="" if row.owner not in ("", "idle") else "dim"),
            bar(row.utilization_ratio),
            bar(memory),
            _number(row.temperature_celsius, "°C"),
            _number(row.power_watts, "W"),
            Text(f"{row.age_seconds:.0f} s", style="bold red" if row.age_seconds > 15 else "dim"),
        )
    if not rows:
        table.add_row(Text("waiting for the first reading ...", style="dim"))
    if len(rows) > room:
        table.add_row(Text(f"... and {len(rows) - room} more (make the window taller)", style="dim"))
    return Panel(table, title="devices", title_align="left", border_style="dim")


def _alerts(rows: Sequence[AlertRow]) -> RenderableType:
    table = Table(expand=True, box=None, pad_edge=False, show_header=False)
    for ratio in (1, 3, 2, 2, 6, 1):
        table.add_column(ratio=ratio, no_wrap=True, overflow="ellipsis")
    for row in rows[:8]:
        style = _SEVERITY.get(row.severity, "")
        table.add_row(
            Text(row.severity, style=style),
            Text(printable(row.rule), style=style),
            _text(row.where),
            _text(row.owner or UNKNOWN),
            _text(row.summary),
            f"{row.age_seconds:.0f} s",
        )
    if not rows:
        table.add_row(Text("none", style="green"))
    if len(rows) > 8:
        table.add_row(Text(f"+{len(rows) - 8}", style="dim"))
    return Panel(table, title="open alerts", title_align="left", border_style="red" if rows else "dim")


def _forecasts(rows: Sequence[ForecastRow]) -> RenderableType:
    table = Table(expand=True, box=None, pad_edge=False, show_header=False)
    for row in rows[:4]:
        table.add_row(*map(_text, (row.where, row.metric, f"limit in {row.eta}", f"{row.probability_ratio * 100:.0f} % sure", row.model)))
    if not rows:
        table.add_row(Text("nothing is heading for a limit", style="dim"))
    return Panel(table, title="forecasts", title_align="left", border_style="yellow" if rows else "dim")


def _stages(rows: Sequence[StageRow]) -> RenderableType:
    table = Table(expand=True, box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(no_wrap=True, overflow="ellipsis")
    cells = []
    for row in rows:
        rate = UNKNOWN if row.per_second is None else f"{row.per_second:.1f}/s"
        lag = UNKNOWN if row.lag is None else str(row.lag)
        cell = Text.assemble((f"{row.role:9} ", "bold"), (f"{row.state:8} ", _STATE.get(row.state, "")), f"{rate:>7} lag {lag}")
        if row.restarts:
            cell.append(f" restarts {row.restarts}", "bold yellow")
        if row.dead_letters:
            cell.append(f" dead letters {row.dead_letters}", "bold red")
        cells.append(cell)
    for start in range(0, len(cells), 3):
        table.add_row(*cells[start : start + 3])
    return Panel(table, title="stages: rate in, lag", title_align="left", border_style="dim")
