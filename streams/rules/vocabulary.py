"""The names that rules may use: metrics by kind, device events, throttle reasons; a wrong one is refused with the nearest right ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Annotated, Final

from pydantic import AfterValidator

from schemas.catalogue import BY_NAME, metric
from schemas.telemetry import v1

SERVICE_METRICS: Final = {"requests_running": "{request}", "requests_waiting": "{request}", "kv_cache_used_ratio": "1"}
"""Gauges of an InferenceWindow that a service rule may look at, and their units."""

PEER_METRICS: Final = (
    "power_watts",
    "sm_clock_hertz",
    "temperature_celsius",
    "memory_temperature_celsius",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
)
"""What a device may be compared with its like in."""

EVENT_KINDS: Final = {
    n.removeprefix("DEVICE_EVENT_KIND_").lower(): v
    for n, v in v1.DeviceEventKind.items()
    if v != v1.DeviceEventKind.DEVICE_EVENT_KIND_UNSPECIFIED
}
EVENT_CLASSES: Final = {
    n.removeprefix("EVENT_CLASS_").lower(): v for n, v in v1.EventClass.items() if v != v1.EventClass.EVENT_CLASS_UNSPECIFIED
}
EVENT_SEVERITIES: Final = {n.removeprefix("SEVERITY_").lower(): v for n, v in v1.Severity.items() if v != v1.Severity.SEVERITY_UNSPECIFIED}
THROTTLE_BITS: Final = {n.removeprefix("THROTTLE_REASON_").lower(): v for n, v in v1.ThrottleReason.items()}


def _nearest(name: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3)
    return f"nearest: {', '.join(near)}" if near else f"one of: {', '.join(sorted(names))}"


def _any_metric(name: str) -> str:
    if name not in SERVICE_METRICS:
        try:
            metric(name)
        except KeyError as error:
            raise ValueError(error.args[0]) from None
    return name


def _metric_of_kind(kind: str) -> AfterValidator:
    def check(name: str) -> str:
        if metric(name).kind != kind:
            fit = ", ".join(m.name for m in BY_NAME.values() if m.kind == kind)
            raise ValueError(f"{name} is a {metric(name).kind}, this condition needs a {kind}: {fit}")
        return name

    return AfterValidator(check)


def _device_metric(name: str) -> str:
    try:
        return metric(name).name
    except KeyError as error:
        raise ValueError(error.args[0]) from None


def _one_of(names: Collection[str], wrong: str) -> AfterValidator:
    """Refuses a name that is not among `names`; `wrong` says so, with the name as {}."""

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"{wrong.format(name)}; {_nearest(name, names)}")
        return name

    return AfterValidator(check)


AnyMetric = Annotated[str, AfterValidator(_any_metric)]
DeviceMetric = Annotated[str, AfterValidator(_device_metric)]
Counter = Annotated[DeviceMetric, _metric_of_kind("counter")]
Gauge = Annotated[DeviceMetric, _metric_of_kind("gauge")]
PeerMetric = Annotated[str, _one_of(PEER_METRICS, "{} is not compared among devices")]
BitSet = Annotated[DeviceMetric, _metric_of_kind("set")]
EventKind = Annotated[str, _one_of(EVENT_KINDS, "no device event {!r}")]
EventClass = Annotated[str, _one_of(EVENT_CLASSES, "no event class {!r}")]
EventSeverity = Annotated[str, _one_of(EVENT_SEVERITIES, "no severity {!r}")]
Bit = Annotated[str, _one_of(THROTTLE_BITS, "no throttle reason {!r}")]
