"""The settings a verb works with, loaded from where the group's --config said."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

    from xpulse.settings import Settings


def settings_of(ctx: click.Context) -> Settings:
    """Load the settings. Raises UsageError (exit 2) naming file or variable, key and remedy."""
    from xpulse.settings import load

    return load(ctx.find_root().obj)
