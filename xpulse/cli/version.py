"""`xpulse version`."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import click

from schemas.codec import MAJOR, MINOR
from xpulse import __version__

_PARTS = ("confluent-kafka", "faust-streaming", "protobuf", "pydantic", "numpy", "influxdb-client", "nvidia-ml-py")


@click.command()
def command() -> None:
    """Print the versions of XPulse, of its messages, and of what it stands on."""
    click.echo(f"xpulse {__version__}, schema {MAJOR}.{MINOR}, Python {platform.python_version()}")
    for name in _PARTS:
        try:
            click.echo(f"  {name} {version(name)}")
        except PackageNotFoundError:
            click.echo(f"  {name} not installed")
