"""Runs a processor under the direct runner, framed: sinks, the forecaster, and stream processors with `--runner direct`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.status import RunnerStatus
from xpulse.bus.loop import run as run_loop
from xpulse.run.frame import framed
from xpulse.run.report import noted_by, of_runner, quality_by

if TYPE_CHECKING:
    from schemas.flow import Processor
    from xpulse.settings import Settings


def run(settings: Settings, processor: Processor) -> int:
    """Until a signal; 0. Raises ProblemFound where the role cannot go on."""
    status = RunnerStatus(processor.role)
    with framed(settings, processor.role, lambda: of_runner(status, noted_by(processor), quality_by(processor))) as stop:
        run_loop(processor, settings.bus, status=status, stop=stop)
    return 0
