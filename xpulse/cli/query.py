"""`xpulse query`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, get_args

import click

from schemas.store import Measurement
from xpulse.cli.context import settings_of
from xpulse.errors import ProblemFound, UsageError


@click.command()
@click.argument("measurement", type=click.Choice(get_args(Measurement)))
@click.argument("fields", nargs=-1, required=True)
@click.option("--since", default="5m", show_default=True, help="How far back from now: 90s, 5m, 2h.")
@click.option("--step", help="One value per step (10s, 1m), the last one held for at most its max age; default: the raw points.")
@click.option("--where", multiple=True, metavar="TAG=VALUE", help="Only series with this tag, as node=gpu-1; may be repeated.")
@click.option("--utc", is_flag=True, help="Show UTC instead of your time zone.")
@click.pass_context
def command(
    ctx: click.Context, measurement: Measurement, fields: tuple[str, ...], since: str, step: str | None, where: tuple[str, ...], utc: bool
) -> None:
    """Print a range of FIELDS of MEASUREMENT from whichever store is configured.

    \b
    Examples:
      xpulse query device power_watts temperature_celsius --since 2m --step 10s --where node=sim-node-0
      xpulse query usage memory_used_bytes --where namespace=prod
    """
    from sinks.open import open_store
    from xpulse.local.plan import duration_seconds
    from xpulse.logs import printable

    settings = settings_of(ctx)
    tags = _tags(where)
    end_ns = time.time_ns()
    start_ns = end_ns - int(duration_seconds(since, "--since") * 1e9)
    step_ns = int(duration_seconds(step, "--step") * 1e9) if step is not None else None
    try:
        store = open_store(settings.sinks, settings.state())
        found = store.range(measurement, fields, start_ns=start_ns, end_ns=end_ns, step_ns=step_ns, where=tags or None)
    except KeyError as error:
        said = str(error.args[0])
        raise UsageError(f"query: {said}" + ("" if "config show" in said else "; all there are: xpulse config show --store")) from None
    except FileNotFoundError as error:
        raise ProblemFound(f"query: no store yet ({error}); start one with: xpulse up") from None
    except ConnectionError as error:
        raise ProblemFound(f"query: the store does not answer: {error}") from None
    rows = 0
    for series in found:
        label = " ".join(f"{k}={printable(v)}" for k, v in series.tags if v)
        for at_ns, value in zip(series.times_ns.tolist(), series.values.tolist(), strict=True):
            shown = "-" if value != value else f"{value:.0f}" if abs(value) >= 1e6 else f"{value:.6g}"
            click.echo(f"{_time(at_ns, utc)}  {label}  {series.field}={shown}")
            rows += 1
    store.close()
    if not rows:
        click.echo(
            "nothing in that range; widen --since, or see what there is with: xpulse query device utilization_ratio --since 1h", err=True
        )


def _tags(where: tuple[str, ...]) -> dict[str, str]:
    tags = {}
    for pair in where:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise UsageError(f"--where {pair!r}: give TAG=VALUE as in node=gpu-1")
        tags[name] = value
    return tags


def _time(at_ns: int, utc: bool) -> Any:
    at = datetime.fromtimestamp(at_ns / 1e9, UTC)
    return (at if utc else at.astimezone()).isoformat(timespec="milliseconds")
