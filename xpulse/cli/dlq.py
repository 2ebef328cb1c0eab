"""`xpulse dlq list | replay`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from xpulse.cli.context import settings_of
from xpulse.errors import UsageError


@click.group()
def command() -> None:
    """List what could not be processed, or send it back after a repair."""


@command.command("list")
@click.option("--group", help="Only of this consumer group.")
@click.option("--topic", help="Only from this topic.")
@click.pass_context
def list_(ctx: click.Context, group: str | None, topic: str | None) -> None:
    """One line a dead letter: its place (PARTITION/OFFSET), when, who rejected it, where it came from, and why."""
    from xpulse.bus.reader import BusReader
    from xpulse.bus.tail import letters
    from xpulse.logs import printable
    from xpulse.run.bus import reachable_bus

    count = 0
    with BusReader(reachable_bus(settings_of(ctx))) as reader:
        for letter in letters(reader):
            if isinstance(letter, str):
                click.echo(f"not a dead letter of ours: {printable(letter)}")
                continue
            if (group and letter.group != group) or (topic and letter.topic != topic):
                continue
            count += 1
            at = datetime.fromtimestamp(letter.at_ns / 1e9, UTC).astimezone().isoformat(timespec="seconds")
            size = "null" if letter.size_bytes is None else f"{letter.size_bytes} B"
            cut = ", cut" if letter.truncated else ""
            click.echo(
                f"{letter.partition}/{letter.offset}  {at}  {printable(letter.group)}  "
                f"{printable(letter.topic)} {letter.source_partition}/{letter.source_offset}  "
                f"{size}{cut}  {printable(letter.reason)}"
            )
    click.echo(f"{count} dead letters", err=True)


@command.command()
@click.argument("places", nargs=-1, required=True, metavar="PARTITION/OFFSET...")
@click.option("--value", type=click.Path(path_type=Path, dir_okay=False), help="File with the repaired value (for one letter).")
@click.option("--set-header", "headers", multiple=True, metavar="NAME=VALUE", help="Set a header, as schema-version=1.0; may be repeated.")
@click.pass_context
def replay(ctx: click.Context, places: tuple[str, ...], value: Path | None, headers: tuple[str, ...]) -> None:
    """Send dead letters back to the topic they came from, with their key and headers; exit 1 where one is refused.

    \b
    Example: xpulse dlq replay 2/15 --set-header schema-version=1.0
    """
    from xpulse.bus.producer import Publisher
    from xpulse.bus.reader import BusReader
    from xpulse.bus.tail import replay as send_back
    from xpulse.run.bus import reachable_bus

    bus = reachable_bus(settings_of(ctx))
    repaired = None
    if value is not None:
        try:
            repaired = value.read_bytes()
        except OSError as error:
            raise UsageError(f"--value {value}: {error.strerror}") from None
    publisher = Publisher(bus, bus.group("dlq-replay"))
    try:
        with BusReader(bus) as reader:
            refused = send_back(reader, publisher.publish, [_place(p) for p in places], value=repaired, set_headers=_headers(headers))
    finally:
        publisher.close()
    for reason in refused:
        click.echo(f"refused: {reason}", err=True)
    click.echo(f"{len(places) - len(refused)} of {len(places)} sent back")
    sys.exit(1 if refused else 0)


def _place(text: str) -> tuple[int, int]:
    partition, slash, offset = text.partition("/")
    if not (slash and partition.isdigit() and offset.isdigit()):
        raise UsageError(f"{text!r}: give PARTITION/OFFSET as `xpulse dlq list` prints it, for example 2/15")
    return int(partition), int(offset)


def _headers(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise UsageError(f"--set-header {pair!r}: give NAME=VALUE as in schema-version=1.0")
        found[name] = value
    return found
