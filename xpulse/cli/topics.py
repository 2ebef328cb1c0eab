"""`xpulse topics create | show | tail`."""

from __future__ import annotations

import sys
import time

import click

from xpulse.cli.context import settings_of


@click.group()
def command() -> None:
    """Create, show or tail the topics."""


@command.command()
@click.option("--dry-run", is_flag=True, help="Change nothing: print the commands and the rights (ACLs) each role needs.")
@click.pass_context
def create(ctx: click.Context, dry_run: bool) -> None:
    """Make the topics that are missing on bus.brokers and verify those that exist; exit 1 where one differs."""
    from xpulse.bus.admin import create_topics
    from xpulse.logs import printable

    report = create_topics(settings_of(ctx).bus, dry_run=dry_run)
    if dry_run:
        click.echo("\n".join(["# topics", *report.commands, "", "# rights", *report.acls]))
        return
    for name in report.created:
        click.echo(f"created   {name}")
    for name in report.verified:
        click.echo(f"verified  {name}")
    for problem in report.problems:
        click.echo(f"PROBLEM   {printable(problem)}", err=True)
    sys.exit(1 if report.problems else 0)


@command.command()
@click.argument("name", required=False)
@click.pass_context
def show(ctx: click.Context, name: str | None) -> None:
    """Show every topic, or one with its key, message, retention, writers and readers."""
    from schemas.topics import TOPICS
    from xpulse.bus.tail import known_topic

    bus = settings_of(ctx).bus
    rows = TOPICS if name is None else [t for t in TOPICS if t.name == known_topic(bus, name)]
    for row in rows:
        kept = "compacted" if row.retention_ms is None else f"{row.retention_ms / 3_600_000:g} h"
        message = row.message.DESCRIPTOR.name if row.message else "-"
        click.echo(f"{bus.wire(row.name):28} key {row.key:18} {message:20} {bus.partitions_of(row.partitions):3} partitions  {kept}")
        if name is not None:
            click.echo(f"  {row.meaning}\n  written by {', '.join(row.writers) or '-'}; read by {', '.join(row.readers) or '-'}")


@command.command()
@click.argument("name")
@click.option("--since", help="Only records of the last 90s, 5m, 2h.")
@click.option("--last", type=click.IntRange(min=1), help="At most so many of each partition.")
@click.option("-f", "--follow", is_flag=True, help="Wait for more until Ctrl-C.")
@click.pass_context
def tail(ctx: click.Context, name: str, since: str | None, last: int | None, follow: bool) -> None:
    """Decode any of our topics to readable lines.

    \b
    Examples:
      xpulse topics tail xpulse.alerts
      xpulse topics tail xpulse.samples --last 2 -f
    """
    from xpulse.bus.tail import tail as lines
    from xpulse.local.plan import duration_seconds
    from xpulse.process import stop_on_signals
    from xpulse.run.bus import reachable_bus

    stop = stop_on_signals()
    since_ns = time.time_ns() - int(duration_seconds(since, "--since") * 1e9) if since is not None else None
    for line in lines(reachable_bus(settings_of(ctx)), name, since_ns=since_ns, last=last, follow=follow, stop=stop):
        click.echo(line)
        if stop.is_set():
            return
