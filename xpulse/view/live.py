"""The two ways to watch a stack: a live screen on a terminal, or one line every few seconds for scripts and logs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xpulse.logs import printable
from xpulse.view.model import AlertRow, Screen

LINE_SECONDS = 5.0
_RANK = {"info": 1, "warning": 2, "critical": 3}


@contextmanager
def live() -> Iterator[Callable[[Screen], None]]:
    """A full screen that is drawn again with each call; the terminal is put back as it was at the end."""
    from rich.console import Console
    from rich.live import Live

    from xpulse.view.render import draw

    console = Console()
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as screen:

        def show(model: Screen) -> None:
            screen.update(draw(model, console.size.height, console.size.width), refresh=True)

        yield show


@contextmanager
def lines() -> Iterator[Callable[[Screen], None]]:
    """A line every LINE_SECONDS on stderr, and one for each incident that opens, gets worse or closes."""
    last = -LINE_SECONDS
    open_: dict[str, AlertRow] = {}

    def show(model: Screen) -> None:
        nonlocal last
        now = {row.incident or f"{row.rule} {row.where}": row for row in model.alerts}
        for key, row in now.items():
            known = open_.get(key)
            if known is None or _RANK.get(row.severity, 0) > _RANK.get(known.severity, 0):
                open_[key] = row
                _write(model.seconds, f"ALERT    {row.rule} {row.where}: {row.severity} {row.summary}{_more(row)}")
        for key in open_.keys() - now.keys():
            row = open_.pop(key)
            _write(model.seconds, f"RESOLVED {row.rule} {row.where}")
        if model.seconds - last >= LINE_SECONDS:
            last = model.seconds
            busy = [f"{s.role} {s.state}" for s in model.stages if s.state not in ("ready", "running")]
            rate = next((s.per_second for s in model.stages if s.role == "attribute"), None)
            alerts = len(model.alerts) + sum(row.others for row in model.alerts)
            text = f"{len(model.devices)} devices, {alerts} open alerts, {len(model.forecasts)} forecasts"
            if rate is not None:
                text += f", {rate:.1f} batches/s"
            _write(model.seconds, text + (f"   ({', '.join(busy)})" if busy else ""))

    yield show


def _more(row: AlertRow) -> str:
    return f" (+{row.others})" if row.others else ""


def _write(seconds: float, text: str) -> None:
    sys.stderr.write(f"{seconds:6.1f} s  {printable(text)}\n")
    sys.stderr.flush()
