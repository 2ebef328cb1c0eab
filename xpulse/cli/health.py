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
    host, documented, cert_file = settings.health.host, settings.health.port or found.port, None
    local = read_ports(settings.state(), [role])[role]
    if role == "agent":  # it has settings of its own for its endpoint
        chosen = settings.northbound.exposition
        host, documented = chosen.host or host, chosen.port or documented
        cert_file = None if local else chosen.cert_file
    host = host if host not in ("0.0.0.0", "::", "") else "127.0.0.1"
    asked = port or local or documented
    status = read(asked, host, cert_file=cert_file)
    if status is None:
        click.echo(f"{role}: no answer on {host}:{asked}; is it running? its log says more", err=True)
        sys.exit(1)
    lag = "unknown" if status.lag is None else str(status.lag)
    click.echo(
        f"{role}: {'ready' if status.ready else 'not ready: ' + printable(status.why_not)}; "
        f"processed {status.processed_total}, published {status.published_total}, lag {lag}, dead letters {status.dead_letters_total}"
    )
    sys.exit(0 if status.ready else 1)
