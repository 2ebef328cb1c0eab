"""`xpulse agent`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from xpulse.cli.context import settings_of


@click.command()
@click.option(
    "--replay",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    help="Read this bundle of `xpulse capture` instead of a driver, over and over; marked simulated.",
)
@click.pass_context
def command(ctx: click.Context, replay: Path | None) -> None:
    """Read the devices of this node with every enabled plugin and publish what they say; runs until a signal.

    \b
    Example: XPULSE_CLUSTER=prod-a XPULSE_BUS__BROKERS=kafka:9092 xpulse agent
    Without a bus: XPULSE_NORTHBOUND__KAFKA=false xpulse agent, then curl http://127.0.0.1:9610/metrics
    """
    from collectors.settings import PluginSettings
    from xpulse.run.agent import run

    settings = settings_of(ctx)
    if replay is not None:
        plugin = PluginSettings(settings={"replay": str(replay), "simulated": True})
        settings = settings.model_copy(update={"collectors": settings.collectors.model_copy(update={"plugins": {"nvidia": plugin}})})
    sys.exit(run(settings))
