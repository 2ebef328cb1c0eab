"""`xpulse health ROLE`."""

from __future__ import annotations

import sys

import click

from xpulse.cli.context import settings_of


@click.command()
@click.argument("role")
@click.option("--port", type=click.IntRange(1, 65535), help="Ask this port instead of the role's.")
@click.pass_context
def command(ctx: click.Context, role: str, port: int | None) -> None:
    """Ask a role's health endpoint; exit 0 when it is ready, 1 when it is not or does not answer.

    \b
    Example: xpulse health detect
    """
    from xpulse.local.runfiles import read_ports
    from xpulse.local.status import read
    from xpulse.logs import printable
    from xpulse.roles import role as find

    settings = settings_of(ctx)
    found = find(role)
    host = settings.health.host if settings.health.host not in ("0.0.0.0", "::", "") else "127.0.0.1"
    asked = port or read_ports(settings.state(), [role])[role] or settings.health.port or found.port
    status = read(asked, host)
    if status is None:
        click.echo(f"{role}: no answer on {host}:{asked}; is it running? its log says more", err=True)
        sys.exit(1)
    lag = "unknown" if status.lag is None else str(status.lag)
    click.echo(
        f"{role}: {'ready' if status.ready else 'not ready: ' + printable(status.why_not)}; "
        f"processed {status.processed_total}, published {status.published_total}, lag {lag}, dead letters {status.dead_letters_total}"
    )
    sys.exit(0 if status.ready else 1)
