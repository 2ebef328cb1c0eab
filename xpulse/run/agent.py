"""The agent's process: plugins behind it, the bus before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collectors.agent import run as run_agent
from collectors.registry import Misconfigured
from schemas.identity import NodeRef
from xpulse.bus.agent import AgentPublisher
from xpulse.errors import UsageError
from xpulse.run.frame import framed
from xpulse.run.report import of_agent

if TYPE_CHECKING:
    from collectors.stats import AgentStats
    from xpulse.settings import Settings

FLUSH_SECONDS: Final = 2.0
"""How long a stopping agent waits for the broker's last acknowledgements."""


def run(settings: Settings) -> int:
    """Until a signal; the exit code."""
    latest: list[AgentStats | None] = [None]

    def keep(stats: AgentStats) -> None:
        latest[0] = stats

    publisher = AgentPublisher(settings.bus)
    with framed(settings, "agent", lambda: of_agent(latest[0], publisher.totals)) as stop:
        try:
            node = NodeRef(settings.require_cluster(), settings.node_name())
            return run_agent(settings.collectors, node, publisher.offer, stop=stop, on_stats=keep)
        except Misconfigured as error:
            raise UsageError(str(error)) from None
        finally:
            publisher.close(FLUSH_SECONDS)
