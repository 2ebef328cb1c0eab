"""`xpulse sink NAME`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from xpulse.cli.context import settings_of
from xpulse.errors import UsageError


@click.command()
@click.argument("name", type=click.Choice(["sqlite", "influxdb", "notify", "mirror"]))
@click.option(
    "--setup", is_flag=True, help="influxdb: make bucket, retention and a token that may read and write that bucket only; then end."
)
@click.option(
    "--admin-token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="influxdb --setup: file with a token that may create buckets and tokens (default: the variable INFLUX_TOKEN).",
)
@click.option(
    "--write-token", type=click.Path(path_type=Path, dir_okay=False), help="influxdb --setup: write the new token to this file (0600)."
)
@click.pass_context
def command(ctx: click.Context, name: str, setup: bool, admin_token_file: Path | None, write_token: Path | None) -> None:
    """Run the sink NAME; runs until a signal.

    \b
    sqlite    writes the embedded store
    influxdb  writes InfluxDB 2
    notify    tells people: console, webhooks
    mirror    repeats alerts as JSON on xpulse.alerts.json
    """
    from xpulse.run.sink import prepare, run

    settings = settings_of(ctx)
    if setup:
        if name != "influxdb":
            raise UsageError(f"--setup is for influxdb; {name} needs none")
        click.echo(prepare(settings, admin_token_file, write_token))
        return
    sys.exit(run(settings, name))
