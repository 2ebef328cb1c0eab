"""`xpulse forecast` and `xpulse forecast report`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from xpulse.cli.context import settings_of
from xpulse.errors import ProblemFound, UsageError

if TYPE_CHECKING:
    from forecasting.scoring.report import Report
    from xpulse.settings import Settings


_TABLE_WIDTH: Final = 140


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Say where series go and when a limit is crossed; runs until a signal.

    With `report`: how good its forecasts were.
    """
    if ctx.invoked_subcommand is None:
        from xpulse.run.forecast import run

        sys.exit(run(settings_of(ctx)))


@command.command()
@click.option("--since", default="7d", show_default=True, help="How far back from now: 30m, 24h, 7d.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric; may be repeated. Default: all that were forecast.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, with coverage by lead and calibration.")
@click.option("--picture", type=click.Path(path_type=Path), help="Also draw it: FILE.png or FILE.svg (needs the extra `pictures`).")
@click.pass_context
def report(ctx: click.Context, since: str, metrics: tuple[str, ...], as_json: bool, picture: Path | None) -> None:
    """Compare every stored forecast with what happened after it, per metric and model.

    \b
    MASE       mean error over the series' usual change from one step to the next
    vs naive   the same over that of "it stays as it is": below 1 the forecast was worth making
    in 90 %    how often the value came inside the 90 % interval; 90 % is right
    pinball    loss over the 5, 50 and 95 % quantiles, in the metric's unit; less is better
    crossed    how often a limit was really crossed; foretold: with a forecast standing
    false      said, and nothing came of it; averted: a restart, deploy or the like came first
    recall     foretold / crossed;  precision  foretold / (foretold + false)
    lead       median time from the first word to the crossing

    \b
    Examples:
      xpulse forecast report
      xpulse forecast report --since 24h --metric memory_used_bytes --picture memory.svg
      xpulse forecast report --json
    """
    settings = settings_of(ctx)
    if picture is not None:
        _check_picture(picture)
    found = _scored(settings, since, metrics)
    if as_json:
        from forecasting.scoring.document import document

        click.echo(json.dumps(document(found), indent=2, allow_nan=False))
    elif not found.metrics:
        click.echo("no forecasts in that period; widen --since, or start the forecaster: xpulse forecast (xpulse up runs it too)", err=True)
    else:
        from rich.console import Console

        from xpulse.view.forecast_report import table

        # columns that are cut off would be worse than long lines
        Console(width=max(_TABLE_WIDTH, Console().width), highlight=False).print(table(found))
    if picture is not None:
        _draw(found, picture)


def _check_picture(picture: Path) -> None:
    """Before minutes of reading, what would fail after them."""
    import importlib.util

    from forecasting.scoring.picture import FORMATS

    if picture.suffix.lstrip(".").lower() not in FORMATS:
        raise UsageError(f"--picture {picture.name!r}: give a name that ends in .png or .svg")
    if not picture.absolute().parent.is_dir():
        raise UsageError(f"--picture {str(picture)!r}: there is no folder {str(picture.absolute().parent)!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--picture needs matplotlib; install it with: pip install 'xpulse[pictures]'")


def _scored(settings: Settings, since: str, metrics: tuple[str, ...]) -> Report:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from forecasting.scoring.report import score
    from sinks.open import open_store
    from xpulse.local.plan import duration_seconds

    end_ns = time.time_ns()
    start_ns = end_ns - round(duration_seconds(since, "--since") * 1e9)
    targets = {target.metric: target for target in settings.forecasting.targets}
    columns = (TextColumn("reading {task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    try:
        store = open_store(settings.sinks, settings.state())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("forecasts", total=1.0)
            return score(
                store,
                targets,
                start_ns=start_ns,
                end_ns=end_ns,
                standing_from=settings.forecasting.recede_probability_ratio,
                metrics=metrics,
                progress=lambda share, metric: progress.update(task, completed=share, description=metric),
            )
    except KeyError as error:
        raise UsageError(f"forecast report: {error.args[0]}") from None
    except FileNotFoundError as error:
        raise ProblemFound(f"forecast report: no store yet ({error}); start one with: xpulse up") from None
    except ConnectionError as error:
        raise ProblemFound(f"forecast report: the store does not answer: {error}") from None


def _draw(found: Report, picture: Path) -> None:
    from forecasting.scoring.picture import draw

    try:
        draw(found, picture)
    except OSError as error:
        raise ProblemFound(f"forecast report: {picture}: {error.strerror or error}") from None
    click.echo(f"drawn: {picture}", err=True)
