"""`xpulse config check | show`."""

from __future__ import annotations

import click

from xpulse.cli.context import settings_of


@click.group()
def command() -> None:
    """Check the settings, or show every setting with its meaning."""


@command.command()
@click.pass_context
def check(ctx: click.Context) -> None:
    """Read the settings file and the environment; exit 2 with the key and the remedy where something is wrong."""
    from streams.rules import RulesError, load_rules
    from xpulse.bus.settings import librdkafka_config
    from xpulse.errors import UsageError
    from xpulse.settings import find_file

    settings = settings_of(ctx)
    librdkafka_config(settings.bus)
    try:
        load_rules(settings.streams.detect.rules)
    except RulesError as error:
        raise UsageError(str(error)) from None
    if "brokers" in settings.bus.model_fields_set and not settings.bus.embedded:
        settings.require_cluster()
    found = find_file(ctx.find_root().obj)
    click.echo(f"settings are good ({found or 'no file: defaults'} and the environment)")


@command.command()
@click.option("--effective", is_flag=True, help="The values in force (file and environment) instead of the defaults; secrets are masked.")
@click.option("--store", is_flag=True, help="The tag set and the field types of every measurement, derived from the metric catalogue.")
@click.option("--metrics", is_flag=True, help="The metric catalogue: unit, kind, cadence, range and names of each metric.")
@click.pass_context
def show(ctx: click.Context, effective: bool, store: bool, metrics: bool) -> None:
    """Print xpulse.yaml: every setting, its default, and what it means."""
    if store:
        _show_store()
    elif metrics:
        _show_metrics()
    else:
        from xpulse.document import render
        from xpulse.settings import Settings

        click.echo(render(Settings, settings_of(ctx) if effective else None), nl=False)


def _show_store() -> None:
    from sinks.measurements import table

    measurement = ""
    for row in table():
        if row.measurement != measurement:
            measurement = row.measurement
            click.echo(measurement)
        click.echo(f"  {row.role:5} {row.name:34} {row.type:7} {row.when:8} {row.unit:9} {row.meaning}".rstrip())


def _show_metrics() -> None:
    from schemas.catalogue import CATALOGUE

    for metric in CATALOGUE:
        span = f"{'' if metric.minimum is None else f'{metric.minimum:g}'}..{'' if metric.maximum is None else f'{metric.maximum:g}'}"
        click.echo(f"{metric.name}  [{metric.unit}] {metric.kind}, {metric.cadence}, {span}")
        click.echo(f"    {metric.meaning}")
