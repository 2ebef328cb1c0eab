"""The agent's OTLP push, where it is turned on: opened, and what it says of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from xpulse.errors import UsageError
from xpulse.run.report import metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.device_state import FleetState
    from schemas.identity import NodeRef
    from xpulse.health import Report, SelfMetric
    from xpulse.northbound.otlp.push import OtlpTotals, Push
    from xpulse.settings import Settings

FLUSH_SECONDS: Final = 1.0
"""How long a stopping agent sends what is known and what waits."""


def opened(settings: Settings, node: NodeRef, state: Callable[[int], FleetState], started_at_ns: int) -> Push | None:
    """A push that is not yet started; None where it is off. Raises UsageError naming the setting."""
    if not settings.northbound.otlp.enabled:
        return None
    from xpulse.northbound.otlp.open import open_push  # here, because an agent that does not push must not pay for it

    try:
        return open_push(settings.northbound.otlp, node, state, started_at_ns=started_at_ns)
    except ValueError as error:
        raise UsageError(str(error)) from None


def told(report: Report, push: Push | None) -> Report:
    """The report with what the push says of itself; the same where there is none."""
    if push is None:
        return report
    totals = push.totals()
    detail = {**report.detail, "otlp": totals.trouble or "delivering"}
    return replace(report, metrics=[*report.metrics, *self_metrics(totals)], detail=detail)


def self_metrics(totals: OtlpTotals) -> list[SelfMetric]:
    return [
        metric("xpulse_otlp_points_sent_total", [({}, totals.sent)]),
        metric("xpulse_otlp_points_failed_total", [({"reason": r}, n) for r, n in sorted(totals.failed.items())]),
        metric("xpulse_otlp_points_dropped_total", [({"reason": r}, n) for r, n in sorted(totals.dropped.items())]),
        metric("xpulse_otlp_retries_total", [({"reason": r}, n) for r, n in sorted(totals.retries.items())]),
        metric("xpulse_otlp_waiting_points", [({}, totals.waiting_points)]),
        metric("xpulse_otlp_waiting_bytes", [({}, totals.waiting_bytes)]),
        metric("xpulse_otlp_last_success_timestamp_seconds", [({}, totals.last_success_ns / 1e9)] if totals.last_success_ns else []),
    ]
