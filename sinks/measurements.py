"""The one table of what is stored: for each measurement its tag set and the type of every field, derived from the protobuf descriptors.

Both stores take their schema from here, `xpulse config show --store` prints it. A tag is part of a series' identity and bounded;
everything else is a field. Integers wider than 63 bits do not exist in either store: an uint field saturates at 2**63 - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, get_args

from schemas.catalogue import CATALOGUE
from schemas.identity import INVENTORY_ONLY
from schemas.store import Measurement as Name
from schemas.telemetry import v1
from sinks.flatten import Column, FieldType, columns

if TYPE_CHECKING:
    from collections.abc import Mapping

When = Literal["tick", "full", "message"]

_METRIC_TYPE: Final[Mapping[str, FieldType]] = {"float": "float", "double": "float", "uint32": "uint", "uint64": "uint", "bool": "bool"}


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `when`: each tick, in full samples (each 60th sequence and on change), or with each message. `unit` is UCUM."""

    name: str
    type: FieldType
    when: When
    unit: str
    meaning: str


@dataclass(frozen=True)
class Measurement:
    """One measurement; `columns` read the fields that come straight from its messages, by message name."""

    name: Name
    meaning: str
    tags: tuple[str, ...]
    fields: tuple[Field, ...]
    columns: Mapping[str, tuple[Column, ...]]

    @cached_property
    def types(self) -> Mapping[str, FieldType]:
        """Field name to type."""
        return {f.name: f.type for f in self.fields}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the printed table."""

    measurement: Name
    name: str
    role: Literal["tag", "field"]
    type: FieldType
    when: str
    unit: str
    meaning: str


def _seq(meaning: str, when: When = "message") -> Field:
    return Field("seq", "uint", when, "1", meaning)


_OFFSET: Final = _seq("Offset of the record this point was made from.")


def _of(*groups: tuple[Column, ...], when: When = "message") -> tuple[Field, ...]:
    """Fields of columns; a name that several messages share is one field, and has one type."""
    found: dict[str, Field] = {}
    for column in (c for group in groups for c in group):
        field = Field(column.name, column.type, when, column.unit, f"{column.source}.")
        if (first := found.setdefault(field.name, field)).type != field.type:
            raise TypeError(f"{column.source} is {field.type}, but {first.meaning} made field {field.name} {first.type}: rename one")
    return tuple(found.values())


def _device() -> Measurement:
    info = columns(
        v1.DeviceInfo.DESCRIPTOR,
        skip={"uid", "vendor", "model", "kind", "index", "driver_version", "cluster", "node", "simulated", *INVENTORY_ONLY},
    )
    metrics = tuple(
        Field(m.name, _METRIC_TYPE[m.wire], "tick" if m.cadence == "fast" else "full", m.unit, m.meaning)
        for m in sorted(CATALOGUE, key=lambda m: m.cadence)
    )
    fields = (
        _seq("Sequence of the batch, gapless within its epoch.", "tick"),
        Field("epoch", "uint", "tick", "ns", "Start of the publisher that counts the sequence."),
        *metrics,
        Field("vendor_metrics", "string", "tick", "1", "Vendor extras as JSON, name to number."),
        Field("links", "string", "full", "1", "Each interconnect link as JSON: a list of what could be read of it."),
        Field("absent", "string", "full", "1", "field=reason,… of everything that could not be read; empty where nothing is missing."),
        Field("index", "uint", "full", "1", "A label for people, never an identity."),
        Field("source", "string", "full", "1", "The collector plugin."),
        Field("boot_id", "string", "full", "1", "Boot of the node: with driver_epoch, the epoch of counters."),
        Field("driver_epoch", "uint", "full", "1", "Changes when the driver is loaded again."),
        Field("driver_version", "string", "full", "1", "Driver of the device."),
        Field("interval_ns", "uint", "full", "ns", "Planned distance of two batches."),
        Field("simulated", "bool", "full", "1", "Not a real device."),
        *_of(info, when="full"),
    )
    tags = ("cluster", "node", "vendor", "uid", "kind", "model")
    return Measurement("device", "What a device said at one instant.", tags, fields, {"DeviceInfo": info})


def _usage() -> Measurement:
    # energy_joules is the difference to the tick before: one of ten of them would look like the energy of 10 s.
    rows = columns(v1.Attributed.DESCRIPTOR, skip={"uid", "namespace", "workload.workload", "energy_joules"})
    fields = (
        _seq("Sequence of the batch that was attributed."),
        Field("epoch", "uint", "message", "ns", "Start of the publisher that counts the sequence."),
        *_of(rows),
        Field("simulated", "bool", "message", "1", "Not a real device."),
    )
    tags = ("cluster", "node", "uid", "namespace", "workload")
    return Measurement("usage", "How much of a device a workload used, every 10 s.", tags, fields, {"Attributed": rows})


def _plain(name: Name, meaning: str, message: type, tags: tuple[str, ...], skip: set[str]) -> Measurement:
    found = columns(message.DESCRIPTOR, skip=skip)  # type: ignore[attr-defined]  # every generated message has a DESCRIPTOR
    return Measurement(name, meaning, tags, (_OFFSET, *_of(found)), {message.__name__: found})


def _event() -> Measurement:
    device = columns(v1.DeviceEvent.DESCRIPTOR, skip={"cluster", "node", "uid", "kind"})
    context = columns(v1.ContextEvent.DESCRIPTOR, skip={"cluster", "node", "entity", "kind"})
    # at_ns of an allocation is when it started: opened and closed are the same point
    change = columns(v1.AllocationChange.DESCRIPTOR, skip={"cluster", "node", "kind", "at_ns", "device_uid"})
    fields = (
        _OFFSET,
        *_of(device, context, change),
        Field("change", "string", "message", "1", "What happened last to an allocation: opened, closed, corrected."),
    )
    meaning = "Things that happened; kind=allocation is an interval in which a workload held a device, one point at its start."
    by_message = {"DeviceEvent": device, "ContextEvent": context, "AllocationChange": change}
    return Measurement("event", meaning, ("cluster", "node", "kind", "entity", "uid"), fields, by_message)


MEASUREMENTS: Final[Mapping[Name, Measurement]] = {
    m.name: m
    for m in (
        _device(),
        _usage(),
        _plain(
            "service",
            "What an inference server did in a window; histograms can be added.",
            v1.InferenceWindow,
            ("cluster", "node", "namespace", "service", "pod"),
            {"cluster", "node", "namespace", "service", "pod"},
        ),
        _plain(
            "finding",
            "What is odd now.",
            v1.Finding,
            ("cluster", "node", "rule", "entity"),
            {"cluster", "node", "rule", "entity"},
        ),
        _plain(
            "alert",
            "Transitions of alerts; status is a tag because two transitions may share an instant.",
            v1.Alert,
            ("cluster", "node", "rule", "entity", "status"),
            {"cluster", "node", "rule", "entity", "status", "at_ns"},
        ),
        _plain(
            "forecast",
            "Where a series goes, and withdrawals.",
            v1.Forecast,
            ("cluster", "node", "entity", "metric"),
            {"cluster", "node", "entity", "metric", "made_at_ns"},
        ),
        _event(),
    )
}


def check(measurements: Mapping[Name, Measurement]) -> None:
    """Raise ValueError where a name is both tag and field (both stores refuse or confuse them), or a measurement lacks `seq`."""
    for m in measurements.values():
        if both := set(m.tags) & set(m.types):
            raise ValueError(f"{m.name}: {', '.join(sorted(both))} is both tag and field")
        if len(m.types) != len(m.fields):
            raise ValueError(f"{m.name}: a field is listed twice")
        if "seq" not in m.types or "time" in m.types or "time" in m.tags:
            raise ValueError(f"{m.name}: needs a field seq, and `time` is a reserved name")
    if missing := set(get_args(Name)) - set(measurements):
        raise ValueError(f"no measurement {', '.join(sorted(missing))}")


check(MEASUREMENTS)


def table() -> list[Row]:
    """The whole table, tags first, for `xpulse config show --store`."""
    rows: list[Row] = []
    for m in MEASUREMENTS.values():
        rows += [Row(m.name, tag, "tag", "string", "always", "1", "Part of the series' identity.") for tag in m.tags]
        rows += [Row(m.name, f.name, "field", f.type, f.when, f.unit, f.meaning) for f in m.fields]
    return rows
