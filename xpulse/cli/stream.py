"""`xpulse stream NAME`."""

from __future__ import annotations

import sys

import click

from xpulse.cli.context import settings_of


@click.command()
@click.argument("name", type=click.Choice(["attribute", "detect", "alert"]))
@click.option("--runner", type=click.Choice(["faust", "direct"]), help="Default: the setting streams.runner. Switching needs a full stop.")
@click.pass_context
def command(ctx: click.Context, name: str, runner: str | None) -> None:
    """Run the stream processor NAME; runs until a signal. Several processes share the partitions.

    \b
    attribute  joins samples with allocations: who uses which device
    detect     turns samples, events and forecasts into findings
    alert      gives findings a life: pending, firing, resolved
    """
    from xpulse.run.stream import run

    settings = settings_of(ctx)
    sys.exit(run(settings, name, runner or settings.streams.runner))
