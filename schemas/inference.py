"""The gauges of an InferenceWindow that rules and forecasts look at: unit, range, and how long one is believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ServiceMetric:
    """One gauge. `minimum` and `maximum` are inclusive and in `unit` (UCUM); None: there is no bound."""

    name: str
    unit: str
    minimum: float | None = 0.0
    maximum: float | None = None


SERVICE_METRICS: Final = {
    metric.name: metric
    for metric in (
        ServiceMetric("requests_running", "{request}"),
        ServiceMetric("requests_waiting", "{request}"),
        ServiceMetric("kv_cache_used_ratio", "1", maximum=1.0),
    )
}

WINDOW_MAX_AGE_NS: Final = 60 * 1_000_000_000
"""An instance whose newest window ended longer ago than this says nothing any more."""
