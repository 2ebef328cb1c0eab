"""A stream processor's process: the same processor under Faust or under the direct runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.processors.build import build
from streams.rules import RulesError
from xpulse.errors import UsageError

if TYPE_CHECKING:
    from xpulse.settings import Settings


def run(settings: Settings, name: str, runner: str) -> int:
    """Until a signal; the exit code."""
    try:
        processor = build(name, settings.streams)
    except RulesError as error:
        raise UsageError(str(error)) from None
    if runner == "direct":
        from xpulse.run.direct import run as run_direct

        return run_direct(settings, processor)
    from xpulse.run.faust import run as run_faust

    return run_faust(settings, processor)
