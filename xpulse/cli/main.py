"""The command line: one verb a module, loaded when it is used, so that `xpulse --help` and every role start fast."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, Final

import click

from xpulse import __version__
from xpulse.errors import XPulseError
from xpulse.logs import printable

VERBS: Final = {
    "up": "run the whole pipeline on this machine, with a live view",
    "agent": "read the devices of this node and publish what they say",
    "stream": "run a stream processor: attribute, detect or alert",
    "sink": "run a sink: sqlite, influxdb, notify or mirror; --setup prepares InfluxDB",
    "forecast": "say where series go and when a limit is crossed; report: how good that was",
    "topics": "create, show or tail the topics",
    "query": "print a range from whichever store is configured",
    "dlq": "list what could not be processed, or send it back",
    "node": "forget a node that is gone for good",
    "health": "ask a role how it does",
    "capture": "record what a driver says into a file for a bug report",
    "config": "check the settings, or show every setting with its meaning",
    "doctor": "say what is off on this machine, why, and what to do",
    "version": "print the versions of XPulse and of what it stands on",
}


class LazyGroup(click.Group):
    """Imports `xpulse.cli.<verb>` when the verb is used; help needs no import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"xpulse.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS:
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            ctx.fail(f"no command {args[0]!r}" + (f"; did you mean {near[0]!r}?" if near else f"; commands: {', '.join(VERBS)}"))
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="First steps: `xpulse up --simulate 2x8 --fault memory_leak@20s+60s` shows a fleet, a forecast, an alert and its end. "
    "Exit codes: 0 good, 1 a problem was found, 2 wrong use or configuration.",
)
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), help="Settings file (default: XPULSE_CONFIG, ./xpulse.yaml, /etc/xpulse/)."
)
@click.version_option(__version__, prog_name="xpulse")
@click.pass_context
def command(ctx: click.Context, config: Path | None) -> None:
    """XPulse watches fleets of accelerators: who uses which card, why a model got slow, and what will fail next."""
    ctx.obj = config


def main(arguments: list[str] | None = None) -> Any:
    """The console script. Errors that are ours end with one message and their exit code, without a traceback."""
    _thrifty_threads()
    try:
        return command(args=arguments, prog_name="xpulse")
    except XPulseError as error:
        click.echo("\n".join(map(printable, f"xpulse: {error}".split("\n"))), err=True)  # a message may repeat what somebody typed
        sys.exit(error.exit_code)
    except BrokenPipeError:  # `xpulse topics tail ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _thrifty_threads() -> None:
    """Numeric libraries start a thread per core in each of our ten processes; one each is enough and saves memory."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")


if __name__ == "__main__":
    main()
