"""What a device says in OpenTelemetry's terms: streams named after the `hw.*` conventions where they have a name, `xpulse.*` elsewhere.

Source of the names: OpenTelemetry semantic conventions, docs/hardware (gpu, common, temperature, fan), status Development, read 2026-12.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from schemas.catalogue import BY_NAME, CATALOGUE, Metric
from schemas.identity import vendor_of
from schemas.telemetry import v1
from schemas.values import Value, name_of

if TYPE_CHECKING:
    from google.protobuf.descriptor import EnumDescriptor

    from schemas.device_state import DeviceState, EventKey

Instrument = Literal["gauge", "counter", "updowncounter"]
Attributes = tuple[tuple[str, str | int | bool], ...]
State = Literal["ok", "degraded", "predicted_failure", "failed"]

STATES: Final[tuple[State, ...]] = ("ok", "degraded", "predicted_failure", "failed")
"""Values of hw.state that the conventions have for a GPU, the best first."""

_UPDOWN: Final = frozenset({"hw.gpu.memory.usage", "hw.gpu.memory.limit"})
"""Gauges of the catalogue that the conventions have as UpDownCounters."""

_HW_TYPE: Final = {
    v1.DeviceKind.DEVICE_KIND_NIC_PORT: "network",
    v1.DeviceKind.DEVICE_KIND_SWITCH: "network",
    v1.DeviceKind.DEVICE_KIND_HOST: "enclosure",
    v1.DeviceKind.DEVICE_KIND_PSU: "power_supply",
}
"""hw.type by kind; accelerators and their partitions are gpu."""

_SLOWDOWN: Final = sum(
    1 << bit
    for bit in (
        v1.ThrottleReason.THROTTLE_REASON_HARDWARE_SLOWDOWN,
        v1.ThrottleReason.THROTTLE_REASON_HARDWARE_THERMAL,
        v1.ThrottleReason.THROTTLE_REASON_HARDWARE_POWER_BRAKE,
    )
)


@dataclass(frozen=True, slots=True)
class Stream:
    """One metric name with what every point of it shares; `unit` is UCUM."""

    name: str
    unit: str
    meaning: str
    instrument: Instrument


class Point(NamedTuple):
    """One value. `start_ns` and `time_ns` are ns UTC; `start_ns` is 0 for gauges. `attributes` tells it within its stream and device."""

    stream: Stream
    attributes: Attributes
    value: Value
    start_ns: int
    time_ns: int


def _instrument(metric: Metric) -> Instrument:
    if metric.kind == "counter":
        return "counter"
    return "updowncounter" if metric.otel_name in _UPDOWN else "gauge"


def _streams() -> dict[str, Stream]:
    found: dict[str, Stream] = {}
    for metric in CATALOGUE:
        # Fields that share a name (hw.gpu.utilization) share a description too: OTLP has one for each name.
        meaning = _SHARED.get(metric.otel_name, metric.meaning)
        found.setdefault(metric.otel_name, Stream(metric.otel_name, metric.unit, meaning, _instrument(metric)))
    return found


_SHARED: Final = {
    "hw.gpu.utilization": "Share of the last interval spent in a task.",
    "hw.gpu.io": "Bytes moved over PCIe, as the device sees them.",
    "hw.temperature": "Temperature.",
    "hw.temperature.limit": "Temperature at which the device slows itself down or turns itself off.",
    "hw.errors": "Memory errors since the driver was loaded.",
    "xpulse.device.interconnect.io": "Bytes moved over NVLink, XGMI, HCCS or the like, all links together.",
}
STREAMS: Final = _streams()
"""Every stream of the catalogue by its OpenTelemetry name."""

MEMORY_UTILIZATION: Final = Stream("hw.gpu.memory.utilization", "1", "Share of the device memory in use.", "gauge")
STATUS: Final = Stream("hw.status", "1", "1 for the state the device is in, 0 for the others.", "updowncounter")
INFO: Final = Stream("xpulse.device.info", "1", "Always 1: what is constant of the device stands in the attributes.", "gauge")
EVENTS: Final = Stream("xpulse.device.events", "{event}", "Events of the device since the agent started.", "counter")
NODE_EVENTS: Final = Stream("xpulse.node.events", "{event}", "Events of no single device since the agent started.", "counter")
_LINK: Final = "xpulse.device.interconnect.link"
LINK_ACTIVE: Final = Stream(f"{_LINK}.active", "1", "1 while the link is up.", "gauge")
LINK_IO: Final = Stream(f"{_LINK}.io", "By", "Bytes moved over the link.", "counter")
LINK_ERRORS: Final = Stream(f"{_LINK}.errors", "{error}", "Errors of the link, by type.", "counter")
LINK_SPEED: Final = Stream(f"{_LINK}.speed", "By/s", "Speed of the link.", "gauge")
LINK_VERSION: Final = Stream(f"{_LINK}.version", "1", "Version of the link's protocol.", "gauge")


def identity(device: DeviceState) -> Attributes:
    """Attributes of every point of the device. hw.id is the uid without the vendor: for NVIDIA the UUID as DCGM writes it."""
    info, vendor = device.info, device.info.vendor or vendor_of(device.uid)
    number = info.minor_number if info.HasField("minor_number") else device.index
    found: list[tuple[str, str | int | bool]] = [
        ("hw.id", device.uid.partition(":")[2] or device.uid),
        ("hw.type", _HW_TYPE.get(info.kind, "gpu")),
        ("hw.name", f"{vendor}{number}" if not device.partition else f"{vendor}:{info.partition.profile or device.index}"),
        ("hw.vendor", vendor),
        ("hw.model", info.model),
        ("hw.serial_number", info.serial),
        ("hw.driver_version", info.driver_version),
        ("hw.firmware_version", info.firmware_version),
        ("hw.parent", info.parent_uid.partition(":")[2]),
    ]
    if info.HasField("partition"):
        found.append(("xpulse.partition.profile", info.partition.profile))
        for name in ("gpu_instance_id", "compute_instance_id"):
            if info.partition.HasField(name):
                found.append((f"xpulse.partition.{name}", int(getattr(info.partition, name))))
    if device.simulated:
        found.append(("xpulse.simulated", True))
    return tuple((key, value) for key, value in found if value != "")


def points(device: DeviceState, started_at_ns: int) -> Iterator[Point]:
    """Everything that is known of the device; what is absent has no point. `started_at_ns` is the agent's start, where events begin."""
    at, since = device.taken_at_ns, min(device.since_ns, device.taken_at_ns)
    for name, value in device.values.items():
        yield from _of_metric(BY_NAME[name], value, since, at)
    used, total = device.values.get("memory_used_bytes"), device.values.get("memory_total_bytes")
    if used is not None and total:
        yield Point(MEMORY_UTILIZATION, (), used / total, 0, at)
    if (now := status(device)) is not None:
        for state in STATES:
            yield Point(STATUS, (("hw.state", state),), int(state == now), since, at)
    yield Point(INFO, _constants(device), 1, 0, at)
    for link in device.links:
        yield from _of_link(link, since, at)
    for name, extra in sorted(device.vendor_metrics.items()):
        clean = re.sub(r"[^a-z0-9_.]", "_", name.lower())
        yield Point(Stream(f"xpulse.vendor.{clean}", "", "A vendor's own metric.", "gauge"), (), extra, 0, at)
    yield from of_events(EVENTS, device.events, started_at_ns, at)


def of_events(stream: Stream, events: Mapping[EventKey, int], started_at_ns: int, at_ns: int) -> Iterator[Point]:
    """One point for each kind and code."""
    for key, count in sorted(events.items(), key=lambda item: (item[0].kind, item[0].code is not None, item[0].code or 0)):
        code: Attributes = () if key.code is None else (("xpulse.event.code", key.code),)
        yield Point(stream, (("xpulse.event.kind", key.kind), *code), count, min(started_at_ns, at_ns), at_ns)


def status(device: DeviceState) -> State | None:
    """The worst that the device says of itself; None where nothing could be read of it for another reason than its loss."""
    said = device.values
    if not said:
        return "failed" if "lost" in device.absences.values() else None
    if said.get("remapped_rows_failed") or said.get("recovery_action", 0) in _BROKEN:
        return "failed"
    if said.get("ecc_sram_threshold_exceeded") or said.get("remapped_row_banks_exhausted"):
        return "predicted_failure"
    waits = any(said.get(name) for name in ("remapped_rows_pending", "retired_pages_pending", "fabric_unhealthy", "recovery_action"))
    return "degraded" if waits or int(said.get("throttle_reasons", 0)) & _SLOWDOWN else "ok"


_BROKEN: Final = (
    v1.RecoveryAction.RECOVERY_ACTION_RESET_DEVICE,
    v1.RecoveryAction.RECOVERY_ACTION_REBOOT_NODE,
    v1.RecoveryAction.RECOVERY_ACTION_RECOVER_FABRIC_DOMAIN,
    6,  # a bus reset and a reboot of the system: of the newest nvml.h
    7,
)


def _of_metric(metric: Metric, value: Value, since_ns: int, at_ns: int) -> Iterator[Point]:
    stream = STREAMS[metric.otel_name]
    start = 0 if stream.instrument == "gauge" else since_ns
    if metric.kind == "set":
        for bit, name in _names(metric.bits, int(value).bit_length(), "bit"):
            yield Point(stream, (*metric.otel_attributes, ("xpulse.reason", name)), int(value) >> bit & 1, start, at_ns)
    elif metric.states:
        for number, name in _names(metric.states, int(value) + 1, "state"):
            yield Point(stream, (*metric.otel_attributes, ("xpulse.state", name)), int(number == value), start, at_ns)
    else:  # a stream is of integers or of doubles, whatever the single value looks like
        exact: Value = float(value) if metric.wire in ("float", "double") else int(value)
        yield Point(stream, metric.otel_attributes, exact, start, at_ns)


def _names(enum: str, least: int, unknown: str) -> list[tuple[int, str]]:
    """(number, lower-case name) of each value of the enum, and of later numbers below `least` as <unknown>_N."""
    descriptor: EnumDescriptor = getattr(v1, enum).DESCRIPTOR
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum).upper() + "_"
    known = {value.number: value.name.removeprefix(prefix).lower() for value in descriptor.values}
    numbers = sorted(known) + ([n for n in range(least) if n not in known] if unknown == "bit" else [least - 1] * (least - 1 not in known))
    return [(number, known.get(number, f"{unknown}_{number}")) for number in numbers]


def _constants(device: DeviceState) -> Attributes:
    info = device.info
    found: list[tuple[str, str | int]] = [("xpulse.device.index", device.index), ("xpulse.device.uid", device.uid)]
    texts = ("bdf", "slot", "board_part", "memory_kind", "runtime_version", "library_version", "architecture", "compute_capability")
    found += [(f"xpulse.device.{name}", str(getattr(info, name))) for name in texts if getattr(info, name)]
    if info.HasField("numa_node"):
        found.append(("xpulse.device.numa_node", info.numa_node))
    if info.kind:
        found.append(("xpulse.device.kind", name_of(v1.DeviceKind.DESCRIPTOR, info.kind)))
    return tuple(found)


_LINK_ERRORS: Final = {
    "replay_errors": "replay",
    "recovery_errors": "recovery",
    "crc_errors": "crc",
    "receive_errors": "receive",
    "effective_errors": "effective",
    "symbol_errors": "symbol",
    "failed_recoveries": "failed_recovery",
}


def _of_link(link: v1.InterconnectLink, since_ns: int, at_ns: int) -> Iterator[Point]:
    which: Attributes = (("xpulse.link", link.index),)
    if link.HasField("active"):
        remote: Attributes = (("xpulse.link.remote_bdf", link.remote_bdf),) if link.remote_bdf else ()
        yield Point(LINK_ACTIVE, which + remote, int(link.active), 0, at_ns)
    for field, direction in (("tx_bytes", "transmit"), ("rx_bytes", "receive")):
        if link.HasField(field):
            yield Point(LINK_IO, (*which, ("network.io.direction", direction)), getattr(link, field), since_ns, at_ns)
    for field, kind in _LINK_ERRORS.items():
        if link.HasField(field):
            yield Point(LINK_ERRORS, (*which, ("error.type", kind)), getattr(link, field), since_ns, at_ns)
    if link.HasField("speed_bytes_per_second"):
        yield Point(LINK_SPEED, which, link.speed_bytes_per_second, 0, at_ns)
    if link.HasField("version"):
        yield Point(LINK_VERSION, which, link.version, 0, at_ns)
