"""The agent's process: plugins behind it, the bus before it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from collectors.agent import run as run_agent
from collectors.registry import Misconfigured
from collectors.requests.lease import LeaseFile
from collectors.requests.node_label import NodeLabel, in_cluster
from collectors.requests.signalled import Signalled
from schemas.identity import NodeRef
from xpulse.bus.agent import AgentPublisher
from xpulse.errors import UsageError
from xpulse.northbound.spool.open import InUse, open_spool
from xpulse.run.frame import framed
from xpulse.run.report import of_agent

if TYPE_CHECKING:
    from collectors.stats import AgentStats
    from xpulse.settings import Settings

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 2.0
"""How long a stopping agent waits for the broker's last acknowledgements."""


def run(settings: Settings) -> int:
    """Until a signal; the exit code."""
    latest: list[AgentStats | None] = [None]

    def keep(stats: AgentStats) -> None:
        latest[0] = stats

    publisher = _publisher(settings)
    with framed(settings, "agent", lambda: of_agent(latest[0], publisher.totals)) as stop:
        if trouble := publisher.totals.spool_trouble:
            log.warning("what the bus does not take is kept in memory only", extra={"why": trouble})
        try:
            node = NodeRef(settings.require_cluster(), settings.node_name())
            return run_agent(
                settings.collectors,
                node,
                publisher.offer,
                stop=stop,
                on_stats=keep,
                requests=_requests(settings, node),
                addresses_file=settings.state() / "addresses.json",
            )
        except Misconfigured as error:
            raise UsageError(str(error)) from None
        finally:
            publisher.close(FLUSH_SECONDS)


def _requests(settings: Settings, node: NodeRef) -> dict[str, Callable[[], str]]:
    """Who may ask for the driver, by name."""
    chosen = settings.collectors.maintenance
    lease = chosen.lease_file or settings.state() / "maintenance"
    found: dict[str, Callable[[], str]] = {"signal": Signalled(), f"lease file {lease}": LeaseFile(lease)}
    api = in_cluster() if chosen.watch_node == "auto" and chosen.node_labels else None
    if api is not None:
        found["node label"] = NodeLabel(api, node.node, chosen.node_labels)
    return found


def _publisher(settings: Settings) -> AgentPublisher:
    """The way to the bus, with the spool behind it. Raises UsageError where another agent has the spool."""
    chosen = settings.northbound.spool
    try:
        spool, trouble = open_spool(chosen, settings.state(), embedded=settings.bus.embedded)
    except InUse as error:
        raise UsageError(f"{error}; give each agent of a host its own: northbound.spool.directory or state_dir") from None
    return AgentPublisher(
        settings.bus,
        spool,
        memory_bytes=chosen.memory_bytes if spool else None,
        patience_seconds=chosen.patience_seconds,
        fsync_seconds=chosen.fsync_seconds,
        replay_bytes_per_second=chosen.replay_bytes_per_second,
        trouble=trouble,
    )
