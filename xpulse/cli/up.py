"""`xpulse up`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from xpulse.cli.context import settings_of
from xpulse.errors import UsageError


@click.command()
@click.option("--simulate", metavar="NxM", help="Simulate N nodes of M devices (2x8), or CxNxM clusters, nodes, devices.")
@click.option(
    "--fake-nvml",
    metavar="BOARD[xCOUNT]",
    help="Fake NVIDIA cards under the real collector, as h100x8; needs a C compiler. The guide lists the boards.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Seed of the simulated devices: the same seed, the same story.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME@START+LENGTH[:SCOPE]",
    help="A fault of the simulated fleet, as memory_leak@20s+60s or cooling_loss@1m+2m:rack=r1; may be repeated.",
)
@click.option("--for", "for_", metavar="DURATION", help="End by itself after this long (150s, 5m), drain, and count what is missing.")
@click.option(
    "--summary", type=click.Path(path_type=Path, dir_okay=False), help="Write what happened as JSON (- for standard output); needs --for."
)
@click.option("--view/--no-view", default=None, help="Live screen or plain lines (default: a screen when standard output is a terminal).")
@click.option(
    "--runner", type=click.Choice(["faust", "direct"]), help="How the stream processors run (default: the setting streams.runner)."
)
@click.pass_context
def command(
    ctx: click.Context,
    simulate: str | None,
    fake_nvml: str | None,
    seed: int,
    faults: tuple[str, ...],
    for_: str | None,
    summary: Path | None,
    view: bool | None,
    runner: str | None,
) -> None:
    """Run the whole line on this machine: bus, agent, stream processors, store, forecaster, notifier, and a live view.

    Where no accelerator is found, a simulated fleet is started and marked so. With bus.brokers set it runs against that Kafka and the
    configured store instead of the built-in ones.

    \b
    Examples:
      xpulse up
      xpulse up --simulate 2x8 --fault memory_leak@20s+60s
      xpulse up --fake-nvml h100x8
      xpulse up --no-view --simulate 2x8 --seed 7 --fault memory_leak@20s+60s --for 150s --summary run.json
    """
    from xpulse.local.fakenvml import fake_nvml as fake_cards
    from xpulse.local.plan import Options, duration_seconds, shape
    from xpulse.local.up import run

    if simulate is not None and fake_nvml is not None:
        raise UsageError("--simulate and --fake-nvml: choose one; the first needs no compiler, the second runs the NVIDIA collector")

    if faults:
        from collectors.simulated.faults import parse_fault

        for fault in faults:
            try:
                parse_fault(fault)
            except ValueError as error:
                raise UsageError(f"--fault: {error}") from None
    if summary is not None and for_ is None:
        raise UsageError("--summary needs --for: a run without an end has no summary")
    if summary is not None and str(summary) != "-":
        _writable(summary)
    if view and not sys.stdout.isatty():
        raise UsageError("--view needs a terminal on standard output; use --no-view in scripts")
    options = Options(
        simulate=shape(simulate) if simulate is not None else None,
        fake_nvml=fake_cards(fake_nvml) if fake_nvml is not None else None,
        seed=seed,
        faults=faults,
        for_seconds=duration_seconds(for_, "--for") if for_ is not None else None,
        summary=summary,
        view=sys.stdout.isatty() if view is None else view,
        runner=runner,
    )
    sys.exit(run(settings_of(ctx), options, lambda text: click.echo(f"xpulse: {text}", err=True)))


def _writable(summary: Path) -> None:
    """Raise UsageError now rather than at the end of the run that was to be counted."""
    try:
        summary.parent.mkdir(parents=True, exist_ok=True)
        summary.open("a", encoding="utf-8").close()
    except OSError as error:
        raise UsageError(f"--summary {str(summary)!r} cannot be written: {error.strerror}") from None
