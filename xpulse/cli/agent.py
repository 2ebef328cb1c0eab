"""`xpulse agent`."""

from __future__ import annotations

import sys

import click

from xpulse.cli.context import settings_of


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Read the devices of this node with every enabled plugin and publish what they say; runs until a signal.

    \b
    Example: XPULSE_CLUSTER=prod-a XPULSE_BUS__BROKERS=kafka:9092 xpulse agent
    """
    from xpulse.run.agent import run

    sys.exit(run(settings_of(ctx)))
