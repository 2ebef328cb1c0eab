"""`xpulse forecast`."""

from __future__ import annotations

import sys

import click

from xpulse.cli.context import settings_of


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Say where series go and when a limit is crossed; runs until a signal."""
    from xpulse.run.forecast import run

    sys.exit(run(settings_of(ctx)))
