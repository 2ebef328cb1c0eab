"""The two ways to watch a stack: a live screen on a terminal, or one line every few seconds for scripts and logs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xpulse.logs import printable
from xpulse.view.model import Screen

LINE_SECONDS = 5.0


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
    """A line every LINE_SECONDS on stderr, and one for each alert that opens or closes."""
    last = -LINE_SECONDS
    open_alerts: dict[str, str] = {}

    def show(model: Screen) -> None:
        nonlocal last
        now = {f"{a.rule} {a.where}": f"{a.severity} {a.summary}" for a in model.alerts}
        for key, text in now.items():
            if key not in open_alerts:
                _write(model.seconds, f"ALERT    {key}: {text}")
        for key in open_alerts.keys() - now.keys():
            _write(model.seconds, f"RESOLVED {key}")
        open_alerts.clear()
        open_alerts.update(now)
        if model.seconds - last >= LINE_SECONDS:
            last = model.seconds
            busy = [f"{s.role} {s.state}" for s in model.stages if s.state not in ("ready", "running")]
            rate = next((s.per_second for s in model.stages if s.role == "attribute"), None)
            text = f"{len(model.devices)} devices, {len(model.alerts)} open alerts, {len(model.forecasts)} forecasts"
            if rate is not None:
                text += f", {rate:.1f} batches/s"
            _write(model.seconds, text + (f"   ({', '.join(busy)})" if busy else ""))

    yield show


def _write(seconds: float, text: str) -> None:
    sys.stderr.write(f"{seconds:6.1f} s  {printable(text)}\n")
    sys.stderr.flush()
