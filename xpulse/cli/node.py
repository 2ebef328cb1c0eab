"""`xpulse node forget`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from xpulse.cli.context import settings_of
from xpulse.errors import ProblemFound, UsageError

if TYPE_CHECKING:
    from schemas.identity import NodeRef


@click.group()
def command() -> None:
    """Take nodes that are gone for good off the inventory."""


@command.command()
@click.argument("node", metavar="CLUSTER/NODE")
@click.option("--force", is_flag=True, help="Although it still reports: it is back with its next samples.")
@click.pass_context
def forget(ctx: click.Context, node: str, force: bool) -> None:
    """Forget a node and its devices, so that it is no longer missed; what stands of it ends. Exit 1 where it still reports.

    \b
    Example: xpulse node forget prod-a/gpu-17
    """
    import time

    from schemas.identity import NodeRef
    from xpulse.bus.nodes import deletions, last_heard_ns, listed
    from xpulse.bus.producer import Publisher
    from xpulse.bus.reader import BusReader
    from xpulse.logs import printable
    from xpulse.run.bus import reachable_bus

    cluster, slash, name = node.partition("/")
    if not (cluster and slash and name) or "/" in name:
        raise UsageError(f"{node!r}: give CLUSTER/NODE, for example prod-a/gpu-17")
    settings = settings_of(ctx)
    bus, asked = reachable_bus(settings), NodeRef(cluster, name)
    silence_seconds = max(60.0, 2 * settings.streams.detect.silence_seconds)
    now_ns = time.time_ns()
    with BusReader(bus) as reader:
        nodes, keys = listed(reader, asked)
        if not keys:
            raise ProblemFound(f"{node} is not on xpulse.inventory; on it are {_some(nodes)}")
        heard_ns = last_heard_ns(reader, asked, now_ns - round(silence_seconds * 1e9))
    if heard_ns is not None and not force:
        ago = max(0.0, (now_ns - heard_ns) / 1e9)
        raise ProblemFound(
            f"{node} still reports: its last samples came {ago:.0f} s ago. Stop its agent and wait {silence_seconds:.0f} s, "
            "or give --force (it is back with its next samples)"
        )
    publisher = Publisher(bus, bus.group("node-forget"))
    try:
        publisher.publish(deletions(keys))
    finally:
        publisher.close()
    devices = len(keys) - (asked.key in keys)
    click.echo(f"{printable(node)} is forgotten, with {devices} device{'s' if devices != 1 else ''}")


def _some(nodes: set[NodeRef]) -> str:
    names = sorted("/".join(ref) for ref in nodes)
    if not names:
        return "no nodes"
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")
