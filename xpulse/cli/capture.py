"""`xpulse capture`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from xpulse.cli.context import settings_of


@click.command()
@click.option("--vendor", type=click.Choice(["nvidia"]), default="nvidia", show_default=True, help="Whose driver to record.")
@click.option("--seconds", type=click.IntRange(2, 3600), default=10, show_default=True, help="How long; one read a second.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write (default: one named by the time).")
@click.option("--no-redact", is_flag=True, help="Keep serials and UUIDs as they are.")
@click.pass_context
def command(ctx: click.Context, vendor: str, seconds: int, output: Path | None, no_redact: bool) -> None:
    """Record what the driver says, call by call, into one file for a bug report; `xpulse agent --replay FILE` reads it back.

    \b
    In the file: every call of the driver with its code, bytes and time, the samples made of them, versions of driver and software.
    Not in it: host name, processes, command lines, environment. Serials and UUIDs are replaced, alike everywhere and anew each time.
    Example: xpulse capture --vendor nvidia --seconds 30
    """
    from rich.console import Console
    from rich.progress import track

    from xpulse.run.capture import record

    settings = settings_of(ctx)
    path = output or Path(f"xpulse-capture-{vendor}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.json.gz")
    steps = iter(track(range(seconds), description="reading the driver", console=Console(stderr=True), transient=True))

    def progress(done: int, of: int) -> None:
        next(steps, None)

    summary = record(settings, path, seconds, redact=not no_redact, progress=progress)
    for _ in steps:
        pass
    click.echo(f"{path}: {summary.ticks} reads of {summary.devices} devices, {summary.calls} calls, driver {summary.driver_version}")
    if no_redact:
        click.echo("serials and UUIDs are in it as they are: send it to nobody you do not trust", err=True)
    else:
        click.echo(f"{summary.replaced} serials and UUIDs were replaced; look inside before you send it: zless {path}")
    sys.exit(0)
