"""The agent's process: plugins behind it, the bus before it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from collectors.agent import run as run_agent
from collectors.registry import Misconfigured
from collectors.requests.lease import LeaseFile
from collectors.requests.node_label import NodeLabel, in_cluster
from collectors.requests.signalled import Signalled
from schemas.identity import NodeRef
from xpulse.errors import UsageError
from xpulse.run import otlp
from xpulse.run.frame import framed
from xpulse.run.pull import Pull
from xpulse.run.report import of_agent

if TYPE_CHECKING:
    from collectors.stats import AgentStats
    from xpulse.bus.agent import AgentPublisher
    from xpulse.health import Report
    from xpulse.settings import Settings

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 2.0
"""How long a stopping agent waits for the broker's last acknowledgements."""

DEFAULT_CLUSTER: Final = "default"
"""The cluster's name where none is set and there is no bus that several clusters may share."""

_FRESH_TICKS: Final = 2.5
"""Ticks, besides the longest read allowed, after which a plugin's last success is stale."""


def run(settings: Settings) -> int:
    """Until a signal; the exit code."""
    kafka = settings.northbound.kafka
    node = NodeRef(settings.require_cluster() if kafka else settings.cluster or DEFAULT_CLUSTER, settings.node_name())
    stats: list[AgentStats | None] = [None]
    fresh_ns = round((_FRESH_TICKS * settings.collectors.interval_seconds + settings.collectors.read_deadline_seconds) * 1e9)

    def keep(now: AgentStats) -> None:
        stats[0] = now

    def report() -> Report:
        said = of_agent(stats[0], publisher.totals if publisher else None, now_ns=time.time_ns(), fresh_ns=fresh_ns)
        return otlp.told(said, push)

    pull = Pull(settings, node, report)
    push = otlp.opened(settings, node, pull.latest.state, time.time_ns())
    publisher = _publisher(settings) if kafka else None
    with framed(settings, "agent", report, serve=pull.serve, bus=kafka) as stop:
        if publisher and (trouble := publisher.totals.spool_trouble):
            log.warning("what the bus does not take is kept in memory only", extra={"why": trouble})
        if push:
            push.start()
        try:
            return run_agent(
                settings.collectors,
                node,
                publisher.offer if publisher else None,
                stop=stop,
                on_stats=keep,
                observer=pull.observer,
                requests=_requests(settings, node),
                state_dir=settings.state(),
            )
        except Misconfigured as error:
            raise UsageError(str(error)) from None
        finally:
            if push:
                push.close(otlp.FLUSH_SECONDS)
            if publisher:
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
    # Here, so that an agent without a bus does not load librdkafka.
    from xpulse.bus.agent import AgentPublisher
    from xpulse.northbound.spool.open import InUse, open_spool

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
