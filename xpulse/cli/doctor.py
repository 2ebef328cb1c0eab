"""`xpulse doctor`."""

from __future__ import annotations

import sys

import click

from xpulse.cli.context import settings_of

_MARK = {"good": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}


@click.command()
@click.option("--node", is_flag=True, help="Look at what the agent of this node needs: driver, devices, kernel log, Kubernetes.")
@click.pass_context
def command(ctx: click.Context, node: bool) -> None:
    """Say what is off on this machine, why, and what to do; exit 1 where something needs doing."""
    from xpulse.logs import printable

    if node:
        from xpulse.node_doctor.examine import examine
    else:
        from xpulse.doctor import examine

    found = examine(settings_of(ctx))
    for diagnosis in found:
        mark, colour = _MARK[diagnosis.level]
        click.echo(f"{click.style(mark, fg=colour)} {diagnosis.subject:16} {printable(diagnosis.text)}")
        if diagnosis.lost:
            click.echo(f"  {'':16} {click.style('lost: ' + printable(diagnosis.lost), dim=True)}")
        if diagnosis.remedy:
            click.echo(f"  {'':16} {click.style('→ ' + printable(diagnosis.remedy), dim=True)}")
    sys.exit(1 if any(d.level == "problem" for d in found) else 0)
