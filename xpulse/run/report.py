"""From a role's own numbers to what its health endpoint says; the names of self-metrics are a closed list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from xpulse.health import Report, SelfMetric
from xpulse.run.delivery import catching_up, delivery_trouble
from xpulse.run.freshness import readiness

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collectors.stats import AgentStats
    from schemas.status import RunnerStatus
    from xpulse.bus.totals import AgentTotals

Kind = Literal["gauge", "counter"]

SELF_METRICS: Final[dict[str, tuple[Kind, str]]] = {
    "xpulse_ready": ("gauge", "1 when the role does its work."),
    "xpulse_records_processed_total": ("counter", "Records taken in."),
    "xpulse_records_published_total": ("counter", "Records published and acknowledged."),
    "xpulse_records_rebuilt_total": ("counter", "Records read again after a start to rebuild state."),
    "xpulse_dead_letters_total": ("counter", "Records sent to xpulse.dlq."),
    "xpulse_defects_total": ("counter", "Records that made the role fail: a fault of XPulse. Each is among the dead letters."),
    "xpulse_noted_total": ("counter", "Things out of the ordinary that a role noted, by what."),
    "xpulse_dropped_total": ("counter", "Items dropped, by reason."),
    "xpulse_retries_total": ("counter", "Times that the bus or the store had to be waited for."),
    "xpulse_foreign_keys": ("gauge", "Keys found in a partition where no producer of ours would have put them."),
    "xpulse_lag_records": ("gauge", "Records still to read, per topic and partition."),
    "xpulse_lost_records_total": ("counter", "Records the broker no longer had when the role came to read them."),
    "xpulse_last_success_timestamp_seconds": ("gauge", "When the role last finished something, seconds since 1970."),
    "xpulse_forecasts_judged_total": ("counter", "Forecasts compared with what happened after them, by metric."),
    "xpulse_forecast_coverage_ratio": ("gauge", "Share of values of the last hours inside their 90 % interval, by metric: 0.9 is right."),
    "xpulse_forecast_mase_ratio": ("gauge", "Mean error of the last hours' forecasts over their series' usual change per step, by metric."),
    "xpulse_plugin_up": ("gauge", "1 while the plugin reads its source."),
    "xpulse_plugin_devices": ("gauge", "Devices in the plugin's last reading."),
    "xpulse_plugin_reads_total": ("counter", "Reads of the plugin."),
    "xpulse_plugin_read_seconds_total": ("counter", "Time spent in reads."),
    "xpulse_plugin_ticks_skipped_total": ("counter", "Ticks that passed while a read took longer than the interval."),
    "xpulse_plugin_restarts_total": ("counter", "Times the plugin's process was started again."),
    "xpulse_plugin_rejects_total": ("counter", "Values turned into absences, by metric and reason."),
    "xpulse_plugin_last_read_seconds": ("gauge", "How long the plugin's last read took."),
    "xpulse_plugin_last_success_timestamp_seconds": ("gauge", "When the plugin last read its source, seconds since 1970."),
    "xpulse_plugin_last_success_age_seconds": ("gauge", "Time since the plugin last read its source."),
    "xpulse_build_info": ("gauge", "1, with the version of XPulse."),
    "xpulse_events_total": ("counter", "What happened on the node, by kind, devices' events included: those of devices that are gone too."),
    "xpulse_scrapes_total": ("counter", "Answers of /metrics, by the names that were asked for."),
    "xpulse_scrape_seconds_total": ("counter", "Time spent making those answers."),
    "xpulse_requests_refused_total": ("counter", "Requests to the endpoint that got no answer, by reason."),
    "xpulse_otlp_points_sent_total": ("counter", "Data points that the OTLP endpoint took."),
    "xpulse_otlp_points_failed_total": ("counter", "Data points that the OTLP endpoint refused for good, by reason."),
    "xpulse_otlp_points_dropped_total": ("counter", "Data points that no OTLP endpoint was there for, by reason."),
    "xpulse_otlp_retries_total": ("counter", "OTLP requests that have to be tried again, by reason."),
    "xpulse_otlp_waiting_points": ("gauge", "Data points that wait for the OTLP endpoint."),
    "xpulse_otlp_waiting_bytes": ("gauge", "Size of the requests that wait for the OTLP endpoint, packed."),
    "xpulse_otlp_last_success_timestamp_seconds": ("gauge", "When the OTLP endpoint last took something, seconds since 1970."),
    "xpulse_bus_unacknowledged_records": ("gauge", "Records the broker has not acknowledged yet, in memory and in the spool."),
    "xpulse_bus_silent_seconds": ("gauge", "For how long the bus has acknowledged nothing although something waits; 0 while it does."),
    "xpulse_bus_sent_twice_total": ("counter", "Records sent again after the bus was silent: it may have both."),
    "xpulse_spool_records": ("gauge", "Records in the spool."),
    "xpulse_spool_bytes": ("gauge", "Size of the spool on disk."),
    "xpulse_spool_limit_bytes": ("gauge", "What the spool may take on disk."),
    "xpulse_spool_oldest_age_seconds": ("gauge", "Age of the oldest record in the spool; 0 where there is none."),
    "xpulse_spool_full_in_seconds": ("gauge", "Until the spool is full at the rate of the last minutes; none where it does not grow."),
    "xpulse_spool_replayed_records_total": ("counter", "Records that were acknowledged after a wait in the spool."),
    "xpulse_spool_dropped_bytes_total": (
        "counter",
        "Bytes of the spool that went over board, by reason; records are in xpulse_dropped_total.",
    ),
}


def metric(name: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> SelfMetric:
    """A self-metric of the closed list; KeyError for any other name."""
    kind, meaning = SELF_METRICS[name]
    return SelfMetric(name, kind, meaning, samples)


def of_runner(status: RunnerStatus, noted: Mapping[str, int] | None = None, more: Sequence[SelfMetric] = ()) -> Report:
    """A stream processor, a sink or the forecaster. `noted` are the processor's own counts, `more` what only it can say. Not ready
    while something is in its way."""
    none: dict[str, str] = {}
    ready = status.ready and not status.trouble
    lost: dict[tuple[str, int], int] = {}
    for row in list(status.lost_ranges):
        key = (row.topic, row.partition)
        lost[key] = lost.get(key, 0) + row.last - row.first + 1
    metrics = [
        metric("xpulse_ready", [(none, float(ready))]),
        metric("xpulse_records_processed_total", [(none, status.processed_total)]),
        metric("xpulse_records_published_total", [(none, status.published_total)]),
        metric("xpulse_records_rebuilt_total", [(none, status.rebuilt_total)]),
        metric("xpulse_dead_letters_total", [(none, status.dead_letters_total)]),
        metric("xpulse_defects_total", [(none, status.defects_total)]),
        metric("xpulse_dropped_total", [({"reason": r}, n) for r, n in sorted(dict(status.dropped_total).items())]),
        metric("xpulse_noted_total", [({"what": what}, n) for what, n in sorted((noted or {}).items())]),
        metric("xpulse_retries_total", [(none, status.retries_total)]),
        metric("xpulse_foreign_keys", [(none, status.foreign_keys_total)]),
        metric(
            "xpulse_lag_records",
            [
                ({"topic": p.topic, "partition": str(p.partition)}, lag)
                for p, lag in sorted(dict(status.assigned).items())
                if lag is not None
            ],
        ),
        metric("xpulse_lost_records_total", [({"topic": t, "partition": str(p)}, n) for (t, p), n in sorted(lost.items())]),
        metric("xpulse_last_success_timestamp_seconds", [(none, status.last_success_ns / 1e9)] if status.last_success_ns else []),
        *more,
    ]
    why_not = status.trouble or ("" if status.ready else "waiting for partitions or restoring state")
    return Report(
        ready=ready,
        why_not=why_not,
        metrics=metrics,
        detail={
            "role": status.role,
            "processed_total": status.processed_total,
            "published_total": status.published_total,
            "dead_letters_total": status.dead_letters_total,
            "rebuilt_total": status.rebuilt_total,
            "lag": status.lag,
            "lost_ranges": [row._asdict() for row in list(status.lost_ranges)],
        },
    )


def of_agent(stats: AgentStats | None, totals: AgentTotals | None, *, now_ns: int = 0, fresh_ns: int = 0) -> Report:
    """The agent: ready while its plugins' last successes are not older than `fresh_ns` and the broker takes what they say.

    `totals` None: there is no bus. `now_ns` is ns UTC; 0 where ages are not to be judged. `processed` are reads, `published` what the
    broker acknowledged.
    """
    plugins = stats.plugins if stats else ()
    read = [p for p in plugins if p.last_success_ns]
    heard, reasons = readiness(plugins, now_ns, fresh_ns)
    trouble = delivery_trouble(totals) if totals else ""
    ready = heard and not trouble
    metrics = [
        metric("xpulse_ready", [({}, float(ready))]),
        *(_bus(totals) if totals else []),
        metric("xpulse_plugin_up", [({"plugin": p.name}, float(p.state == "reading")) for p in plugins]),
        metric("xpulse_plugin_devices", [({"plugin": p.name}, p.devices) for p in plugins]),
        metric("xpulse_plugin_reads_total", [({"plugin": p.name}, p.reads) for p in plugins]),
        metric("xpulse_plugin_read_seconds_total", [({"plugin": p.name}, p.read_seconds) for p in plugins]),
        metric("xpulse_plugin_last_read_seconds", [({"plugin": p.name}, p.last_read_seconds) for p in read]),
        metric("xpulse_plugin_last_success_timestamp_seconds", [({"plugin": p.name}, p.last_success_ns / 1e9) for p in read]),
        metric("xpulse_plugin_last_success_age_seconds", [({"plugin": p.name}, (now_ns - p.last_success_ns) / 1e9) for p in read]),
        metric("xpulse_plugin_ticks_skipped_total", [({"plugin": p.name}, p.ticks_skipped) for p in plugins]),
        metric("xpulse_plugin_restarts_total", [({"plugin": p.name}, p.restarts) for p in plugins]),
        metric(
            "xpulse_plugin_rejects_total",
            [({"plugin": p.name, "metric": m, "reason": r}, n) for p in plugins for (m, r), n in sorted(p.rejects.items())],
        ),
        metric(
            "xpulse_dropped_total",
            [({"plugin": p.name, "reason": r}, n) for p in plugins for r, n in sorted(p.dropped.items())]
            + [({"plugin": "", "reason": r}, n) for r, n in sorted(totals.failed.items() if totals else ())],
        ),
    ]
    return Report(
        ready=ready,
        why_not="; ".join(filter(None, [trouble, reasons or ("" if heard else "no plugin has answered yet")])),
        metrics=metrics,
        detail={
            "role": "agent",
            "processed_total": sum(p.reads for p in plugins),
            "published_total": totals.acknowledged if totals else 0,
            "dead_letters_total": 0,
            "lag": totals.unacknowledged if totals else 0,
            "delivery": trouble or totals.spool_trouble or catching_up(totals) if totals else "no bus: northbound.kafka is off",
        },
    )


def _bus(totals: AgentTotals) -> list[SelfMetric]:
    return [
        metric("xpulse_records_published_total", [({}, totals.acknowledged)]),
        metric("xpulse_bus_unacknowledged_records", [({}, totals.unacknowledged)]),
        metric("xpulse_bus_silent_seconds", [({}, totals.silent_seconds)]),
        metric("xpulse_bus_sent_twice_total", [({}, totals.sent_twice)]),
        metric("xpulse_last_success_timestamp_seconds", [({}, totals.last_ack_ns / 1e9)] if totals.last_ack_ns else []),
        *_spool(totals),
    ]


def _spool(totals: AgentTotals) -> list[SelfMetric]:
    """Nothing where there is no spool."""
    if not totals.spool_limit_bytes:
        return []
    return [
        metric("xpulse_spool_records", [({}, totals.spool_records)]),
        metric("xpulse_spool_bytes", [({}, totals.spool_bytes)]),
        metric("xpulse_spool_limit_bytes", [({}, totals.spool_limit_bytes)]),
        metric("xpulse_spool_oldest_age_seconds", [({}, totals.spool_oldest_seconds)]),
        metric("xpulse_spool_full_in_seconds", [] if totals.spool_full_seconds is None else [({}, totals.spool_full_seconds)]),
        metric("xpulse_spool_replayed_records_total", [({}, totals.replayed)]),
        metric("xpulse_spool_dropped_bytes_total", [({"reason": r}, n) for r, n in sorted(dict(totals.spool_dropped_bytes).items())]),
    ]


def noted_by(processor: object) -> dict[str, int]:
    """A processor's own counts, whichever name its part gives them."""
    found: dict[str, int] = {}
    for name in ("counters", "events"):
        found |= dict(getattr(processor, name, {}))
    return found


def quality_by(processor: object) -> list[SelfMetric]:
    """How good a forecaster's forecasts were lately; nothing for any other processor."""
    found = sorted(dict(getattr(processor, "forecast_quality", {})).items())
    if not found:
        return []
    return [
        metric("xpulse_forecasts_judged_total", [({"metric": name}, quality.judged) for name, quality in found]),
        metric("xpulse_forecast_coverage_ratio", [({"metric": n}, q.coverage) for n, q in found if q.coverage is not None]),
        metric("xpulse_forecast_mase_ratio", [({"metric": n}, q.mase) for n, q in found if q.mase is not None]),
    ]
