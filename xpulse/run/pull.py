"""The agent's pull side: what it has heard, kept for whoever asks, and the endpoint that tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from schemas.openmetrics import EVENTS
from xpulse.health import HealthServer, Report, SelfMetric
from xpulse.northbound.exposition.endpoint import open_endpoint, token_of
from xpulse.northbound.exposition.journal import Journal
from xpulse.northbound.exposition.page import MetricsPage
from xpulse.northbound.latest import Latest
from xpulse.northbound.several import Several
from xpulse.roles import role
from xpulse.run.report import metric

if TYPE_CHECKING:
    from collectors.observer import Observer
    from schemas.identity import NodeRef
    from xpulse.settings import Settings


def address(settings: Settings) -> tuple[str, int]:
    """Host and port of the agent's endpoint: its own settings, else those of every role, else the documented ones."""
    chosen, common = settings.northbound.exposition, settings.health
    port = chosen.port if chosen.port is not None else common.port
    return chosen.host or common.host, role("agent").port if port is None else port


class Pull:
    """Give `observer` to the agent and `serve` to its frame. `report` is what the agent says of itself."""

    def __init__(self, settings: Settings, node: NodeRef, report: Callable[[], Report]) -> None:
        collectors = settings.collectors
        self.latest = Latest(
            node,
            interval_ns=round(collectors.interval_seconds * 1e9),
            slow_interval_ns=round(collectors.slow_interval_seconds * 1e9),
            labels=collectors.labels,
        )
        self._settings, self._node, self._report = settings, node, report
        self._journal = Journal(node)
        self._server: HealthServer | None = None
        chosen = settings.northbound.exposition
        self._page = MetricsPage(
            self.latest, self._journal, self._self_metrics, token=token_of(chosen), host_label=chosen.dcgm_hostname_label
        )

    @property
    def observer(self) -> Observer:
        """Hears what the agent hears."""
        return Several(self.latest, self._journal)

    def serve(self, local_stack: bool) -> HealthServer:
        """Listen. Raises UsageError naming the setting."""
        host, port = address(self._settings)
        self._server = open_endpoint(self._settings.northbound.exposition, host, port, self._report, self._page, local_stack=local_stack)
        return self._server

    def _self_metrics(self) -> Sequence[SelfMetric]:
        happened = dict.fromkeys(((self._node.cluster, self._node.node, kind) for kind in EVENTS), 0) | dict(self._journal.events())
        scrapes = self._page.scrapes()
        refused = dict(self._server.refused) if self._server is not None else {}
        refused["unauthorized"] = self._page.unauthorized
        return [
            *self._report().metrics,
            metric("xpulse_build_info", [({"version": _version()}, 1)]),
            metric("xpulse_events_total", [({"cluster": c, "node": n, "event": kind}, count) for (c, n, kind), count in happened.items()]),
            metric("xpulse_scrapes_total", [({"names": names}, count) for names, (count, _) in scrapes.items()]),
            metric("xpulse_scrape_seconds_total", [({"names": names}, seconds) for names, (_, seconds) in scrapes.items()]),
            metric("xpulse_requests_refused_total", [({"reason": reason}, count) for reason, count in sorted(refused.items())]),
        ]


def _version() -> str:
    try:
        return version("xpulse")
    except PackageNotFoundError:  # run from a bare checkout
        return ""
