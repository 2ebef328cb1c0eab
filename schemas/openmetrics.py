"""Writes a fleet's state as Prometheus text or OpenMetrics: every name, unit and meaning comes from the catalogue.

Labels hold identity only, from two closed lists: what changes with time is a value. A device that is not in the state has no sample,
a reading that is not there has none either; `xpulse_device_field_absent` says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from schemas.catalogue import CATALOGUE, Metric
from schemas.device_state import DeviceState, EventKey, FleetState, NodeState
from schemas.identity import vendor_of
from schemas.merged import one_per_device
from schemas.openmetrics_text import Format, Kind, escaped, head, label_name, pairs, sample_name, short, unit_in
from schemas.telemetry import v1
from schemas.values import REASONS, name_of

IDENTITY: Final = ("cluster", "node", "vendor", "uid", "kind", "parent", "simulated")
"""Labels of every device's series: what tells it from others. `parent` only on partitions, `simulated` only where it is."""

INFO: Final = (
    "model",
    "serial",
    "index",
    "bdf",
    "slot",
    "driver_version",
    "runtime_version",
    "library_version",
    "firmware_version",
    "board_part",
    "architecture",
    "compute_capability",
    "memory_kind",
    "minor_number",
    "numa_node",
    "virtualization",
    "profile",
    "gpu_instance_id",
    "compute_instance_id",
)
"""Labels of xpulse_device_info besides the identity: constant as long as the driver stays loaded."""

MOST_VENDOR_METRICS: Final = 100
"""Vendor extras shown per device."""

_OF_FAMILY: Final = ("link", "remote_bdf", "remote_kind", "metric", "field", "reason", "trouble", "event", "code")
LABELS: Final = frozenset({*IDENTITY, *INFO, *_OF_FAMILY})
"""Every label that a device's series may have."""

EVENTS: Final = tuple(name_of(v1.DeviceEventKind.DESCRIPTOR, n) for n in v1.DeviceEventKind.values() if n)
"""Every kind of event: each has a series from the start, so that the first event is an increase."""

_OF_DEVICES: Final = tuple(kind for kind in EVENTS if kind not in ("source_unavailable", "maintenance", "maintenance_ended"))


class _Field(NamedTuple):
    name: str
    sample: str
    head: Mapping[Format, str]
    wire: str


class _Set(NamedTuple):
    name: str
    head: Mapping[Format, str]
    opened: tuple[str, ...]
    """For each bit the start of its sample, up to the identity's labels."""
    sample: str
    label: str


class _Row(NamedTuple):
    device: DeviceState
    labels: str
    """The identity, without braces."""


def encode(fleet: FleetState, form: Format = "text") -> str:
    """The whole state, families in the catalogue's order, without OpenMetrics' end mark (what else the agent says comes before that)."""
    rows = [_Row(device, pairs(_identity(device))) for device in one_per_device(fleet.devices)]
    out: list[str] = []
    if rows:
        _fields(out, rows, form)
        _sets(out, rows, form)
        _absences(out, rows, form)
        _links(out, rows, form)
        _vendor(out, rows, form)
        _about(out, rows, form)
        meaning = "What happened to the device since the agent started; from 0, so that the first one is an increase."
        _events(out, "device", meaning, _OF_DEVICES, [(row.labels, row.device.events) for row in rows], form)
    if fleet.nodes:
        nodes = [(f'cluster="{escaped(n.node.cluster)}",node="{escaped(n.node.node)}"', n) for n in fleet.nodes]
        out.append(head("xpulse_node", "info", "The node, with the labels that collectors.labels gives it.", form))
        out += [f"xpulse_node_info{{{labels}{_node_labels(node)}}} 1\n" for labels, node in nodes]
        meaning = "What happened on the node and is of no one device (a source that hangs, an Xid of an unknown card)."
        _events(out, "node", meaning, EVENTS, [(labels, node.events) for labels, node in nodes], form)
    return "".join(out)


def _identity(device: DeviceState) -> Iterable[tuple[str, str]]:
    info = device.info
    yield "cluster", device.node.cluster
    yield "node", device.node.node
    yield "vendor", info.vendor or vendor_of(device.uid)
    yield "uid", device.uid
    yield "kind", name_of(v1.DeviceKind.DESCRIPTOR, info.kind) if info.kind else ""
    yield "parent", info.parent_uid
    yield "simulated", "true" if device.simulated else ""


def _details(device: DeviceState) -> Iterable[tuple[str, str]]:
    info, part = device.info, device.info.partition
    for name in INFO:
        if name == "index":
            yield name, str(device.index)
        elif name == "profile":
            yield name, part.profile
        elif name in ("gpu_instance_id", "compute_instance_id"):
            yield name, str(getattr(part, name)) if part.HasField(name) else ""
        elif name in ("minor_number", "numa_node"):
            yield name, str(getattr(info, name)) if info.HasField(name) else ""
        else:
            yield name, getattr(info, name)


def _node_labels(node: NodeState) -> str:
    names: list[str] = []
    text = ""
    for given, value in sorted(node.labels.items()):
        names.append(label_name(f"label_{given}", names))
        text += f',{names[-1]}="{escaped(value)}"' if value else ""
    return text


def _fields(out: list[str], rows: list[_Row], form: Format) -> None:
    for field in _FIELDS:
        name, sample = field.name, field.sample
        found = [(row.labels, row.device.values[name]) for row in rows if name in row.device.values]
        if not found:
            continue
        out.append(field.head[form])
        match field.wire:
            case "float":
                out += [f"{sample}{{{labels}}} {short(value)}\n" for labels, value in found]
            case "bool":
                out += [f"{sample}{{{labels}}} {1 if value else 0}\n" for labels, value in found]
            case _:
                out += [f"{sample}{{{labels}}} {value}\n" for labels, value in found]


def _sets(out: list[str], rows: list[_Row], form: Format) -> None:
    for one in _SETS:
        found = [(row.labels, int(row.device.values[one.name])) for row in rows if one.name in row.device.values]
        if not found:
            continue
        out.append(one.head[form])
        for labels, bits in found:
            out += [f"{opened}{labels}}} {bits >> n & 1}\n" for n, opened in enumerate(one.opened)]
            if unknown := bits >> len(one.opened):
                of_later_releases = (n + len(one.opened) for n in range(unknown.bit_length()) if unknown >> n & 1)
                out += [f'{one.sample}{{{one.label}="bit_{n}",{labels}}} 1\n' for n in of_later_releases]


def _absences(out: list[str], rows: list[_Row], form: Format) -> None:
    meaning = "Readings that could not be had, by reason; not_supported ones are only counted."
    out.append(head("xpulse_device_fields_absent", "gauge", meaning, form))
    told: list[str] = []
    for row in rows:
        counts = dict.fromkeys(REASONS, 0)
        for name, reason in row.device.absences.items():
            counts[reason] += 1
            if reason != "not_supported":
                told.append(f'xpulse_device_field_absent{{{row.labels},field="{name}",reason="{reason}"}} 1\n')
        out += [f'xpulse_device_fields_absent{{{row.labels},reason="{reason}"}} {count}\n' for reason, count in counts.items()]
    if told:
        out.append(
            head("xpulse_device_field_absent", "gauge", "1 for a reading that the device should have and that could not be had.", form)
        )
        out += told


def _links(out: list[str], rows: list[_Row], form: Format) -> None:
    linked = [(f'{row.labels},link="{link.index}"', link) for row in rows for link in row.device.links]
    if not linked:
        return
    for name, kind, meaning in _LINK:
        found = [(labels, getattr(link, name)) for labels, link in linked if link.HasField(name)]
        if found:
            family = f"xpulse_device_link_{name}"
            out.append(head(family, kind, meaning, form, unit_in(family)))
            sample = sample_name(family, kind)
            out += [f"{sample}{{{labels}}} {value if value.__class__ is int else short(value)}\n" for labels, value in found]
    far = [(labels, link) for labels, link in linked if link.remote_bdf or link.remote_kind]
    if far:
        out.append(head("xpulse_device_link", "info", "What is at the other end of an interconnect link.", form))
        for labels, link in far:
            kind_there = name_of(v1.DeviceKind.DESCRIPTOR, link.remote_kind) if link.remote_kind else ""
            more = pairs((("remote_bdf", link.remote_bdf), ("remote_kind", kind_there)))
            out.append(f"xpulse_device_link_info{{{labels},{more}}} 1\n")


def _vendor(out: list[str], rows: list[_Row], form: Format) -> None:
    found = [(row.labels, sorted(row.device.vendor_metrics.items())[:MOST_VENDOR_METRICS]) for row in rows if row.device.vendor_metrics]
    if found:
        out.append(
            head("xpulse_device_vendor_metric", "gauge", "A reading that the catalogue has no field for, by its registered name.", form)
        )
        for labels, extras in found:
            out += [f'xpulse_device_vendor_metric{{{labels},metric="{escaped(name)}"}} {value}\n' for name, value in extras]


def _about(out: list[str], rows: list[_Row], form: Format) -> None:
    out.append(head("xpulse_device_read_timestamp_seconds", "gauge", "When the device was last read, seconds since 1970.", form, "seconds"))
    out += [f"xpulse_device_read_timestamp_seconds{{{row.labels}}} {row.device.taken_at_ns / 1e9:.3f}\n" for row in rows]
    out.append(head("xpulse_device", "info", "The device's constants; join them by uid.", form))
    out += [f"xpulse_device_info{{{row.labels},{pairs(_details(row.device))}}} 1\n" for row in rows]


def _events(
    out: list[str], of: str, meaning: str, kinds: tuple[str, ...], rows: list[tuple[str, Mapping[EventKey, int]]], form: Format
) -> None:
    out.append(head(f"xpulse_{of}_events", "counter", meaning, form))
    coded: list[str] = []
    for labels, events in rows:
        counts = dict.fromkeys(kinds, 0)
        for key, count in events.items():
            counts[key.kind] = counts.get(key.kind, 0) + count
            if key.code is not None:
                kind = escaped(key.kind)
                coded.append(f'xpulse_{of}_event_codes_total{{{labels},event="{kind}",code="{key.code}"}} {count}\n')
        out += [f'xpulse_{of}_events_total{{{labels},event="{escaped(kind)}"}} {count}\n' for kind, count in counts.items()]
    if coded:
        out.append(
            head(f"xpulse_{of}_event_codes", "counter", f"Events of the {of} that have the vendor's number (an Xid, say), by it.", form)
        )
        out += coded


def _words(enum: str) -> dict[int, str]:
    """Number to lower-case name of the values of a catalogue's enum (bits or states)."""
    descriptor = getattr(v1, enum).DESCRIPTOR
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum).upper() + "_"
    return {value.number: value.name.removeprefix(prefix).lower() for value in descriptor.values}


def _meaning(metric: Metric) -> str:
    said = metric.meaning.rstrip(".")
    if metric.states:
        said += " (" + ", ".join(f"{number} {word}" for number, word in _words(metric.states).items()) + ")"
    return said + (". Whole board." if metric.board_level else ".")


def _heads(name: str, kind: Kind, meaning: str) -> dict[Format, str]:
    unit = unit_in(name)
    return {"text": head(name, kind, meaning, "text", unit), "openmetrics": head(name, kind, meaning, "openmetrics", unit)}


def _field(metric: Metric) -> _Field:
    kind: Kind = "counter" if metric.kind == "counter" else "gauge"
    heads = _heads(metric.prometheus_name, kind, _meaning(metric))
    return _Field(metric.name, sample_name(metric.prometheus_name, kind), heads, metric.wire)


def _set(metric: Metric) -> _Set:
    """ThrottleReason -> xpulse_device_throttle_reason{reason="..."}: one series a bit."""
    family = "xpulse_device_" + re.sub(r"(?<!^)(?=[A-Z])", "_", metric.bits).lower()
    label = family.rpartition("_")[2]
    words = _words(metric.bits)
    opened = tuple(f'{family}{{{label}="{words.get(n, f"bit_{n}")}",' for n in range(max(words) + 1))
    return _Set(
        metric.name, _heads(family, "gauge", f"{metric.meaning.partition(':')[0].rstrip('.')}: 1 where it applies."), opened, family, label
    )


_FIELDS: Final = tuple(_field(metric) for metric in CATALOGUE)
_SETS: Final = tuple(_set(metric) for metric in CATALOGUE if metric.bits)
_LINK: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("active", "gauge", "1 while the interconnect link is up."),
    ("tx_bytes", "counter", "Bytes sent over the link."),
    ("rx_bytes", "counter", "Bytes received over the link."),
    ("replay_errors", "counter", "Packets sent again over the link."),
    ("recovery_errors", "counter", "Recoveries of the link."),
    ("crc_errors", "counter", "CRC errors of the link."),
    ("receive_errors", "counter", "Packets received with errors."),
    ("effective_errors", "counter", "Errors left after correction."),
    ("symbol_errors", "counter", "Symbol errors of the link."),
    ("failed_recoveries", "counter", "Recoveries of the link that failed."),
    ("version", "gauge", "Generation of the link's protocol."),
    ("speed_bytes_per_second", "gauge", "Speed of the link, one direction."),
)
"""The optional fields of InterconnectLink."""
