"""What a store is given: one point of one series, made from a message alone, so that reading a topic again writes the same points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from schemas.flow import Rejected
from schemas.identity import device_entity, node_entity
from schemas.store import Measurement, Scalar
from schemas.telemetry import v1
from schemas.values import name_of
from sinks.flatten import INT63, flatten
from sinks.measurements import MEASUREMENTS
from sinks.text import MAX_TAG_CHARACTERS, clean

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from google.protobuf.message import Message

SPREAD_NS: Final = 1_000_000
"""Events of one entity and kind at one instant would be one point: each is moved by less than this, by a hash; `at_ns` is exact."""


class Row(Mapping[str, "Scalar"]):
    """Numbers as a point's fields, their names shared with many other points: making dictionaries takes half as long again (measured).

    Whoever makes it has checked the numbers: finite, of the fields' types, none a bool, no integer above 63 bits.
    """

    __slots__ = ("names", "numbers")

    def __init__(self, names: tuple[str, ...], numbers: tuple[float, ...]) -> None:
        self.names = names
        self.numbers = numbers

    def __getitem__(self, name: str) -> float:
        try:
            return self.numbers[self.names.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class Point(NamedTuple):
    """`tags`: values of the measurement's tags in the table's order, "" where there is none. Fields have its types and are finite."""

    measurement: Measurement
    tags: tuple[str, ...]
    fields: Mapping[str, Scalar]
    time_ns: int


class RejectedPoint(NamedTuple):
    """A point (by its position among those given) that a store will never accept."""

    position: int
    reason: str


class PointWriter(Protocol):
    """A store's writing side. `write` returns only after the points are durable; it raises Busy where the same points must come again."""

    def write(self, points: Sequence[Point]) -> list[RejectedPoint]: ...

    @property
    def dropped(self) -> Counter[str]:
        """What was left out on purpose since the start, by reason."""
        ...

    def close(self) -> None: ...


def points_of(message: Message, offset: int) -> list[Point]:
    """Points of any message but a SampleBatch (sinks.device) or an AttributedBatch (sinks.usage).

    Raises Rejected for one whose time no store can hold.
    """
    make = _MAKERS.get(type(message).__name__)
    if make is None:
        raise Rejected(f"no measurement for {type(message).__name__}")
    return make(message, offset)


def checked_time(time_ns: int) -> int:
    """The time, or Rejected where it does not fit 63 bits (the stores' own limit: the year 2262)."""
    if not 0 < time_ns < INT63:
        raise Rejected(f"time {time_ns} ns is outside 1970-2262")
    return time_ns


def tag(text: str) -> str:
    """Text as a tag value."""
    return clean(text, MAX_TAG_CHARACTERS)


def sane(fields: dict[str, Scalar]) -> dict[str, Scalar]:
    """The fields without NaN and infinities (a foreign producer's; SampleBuilder makes none): unknown, as no store has a NaN."""
    if all(not isinstance(v, float) or isfinite(v) for v in fields.values()):
        return fields
    return {name: v for name, v in fields.items() if not isinstance(v, float) or isfinite(v)}


def _service(window: v1.InferenceWindow, offset: int) -> list[Point]:
    who = window.workload
    tags = (window.cluster, window.node, who.namespace, who.service or who.workload, who.pod)
    return [_point("service", tags, window, window.ended_at_ns, offset)]


def _finding(finding: v1.Finding, offset: int) -> list[Point]:
    tags = (finding.cluster, finding.node, finding.rule, finding.entity)
    return [_point("finding", tags, finding, finding.observed_at_ns, offset)]


def _alert(alert: v1.Alert, offset: int) -> list[Point]:
    status = name_of(v1.AlertStatus.DESCRIPTOR, alert.status)
    tags = (alert.cluster, alert.node, alert.rule, alert.entity, status)
    return [_point("alert", tags, alert, alert.at_ns, offset)]


def _forecast(forecast: v1.Forecast, offset: int) -> list[Point]:
    tags = (forecast.cluster, forecast.node, forecast.entity, forecast.metric)
    return [_point("forecast", tags, forecast, forecast.made_at_ns, offset)]


def _device_event(event: v1.DeviceEvent, offset: int) -> list[Point]:
    entity = device_entity(event.uid) if event.uid else node_entity(event.cluster, event.node)
    kind = name_of(v1.DeviceEventKind.DESCRIPTOR, event.kind)
    return [_happened(event, (event.cluster, event.node, kind, entity, event.uid), event.at_ns, event.id, offset)]


def _context_event(event: v1.ContextEvent, offset: int) -> list[Point]:
    kind = name_of(v1.ContextEventKind.DESCRIPTOR, event.kind)
    uid = event.entity.removeprefix("device/") if event.entity.startswith("device/") else ""
    return [_happened(event, (event.cluster, event.node, kind, event.entity, uid), event.at_ns, event.id, offset)]


def _allocation_change(change: v1.AllocationChange, offset: int) -> list[Point]:
    held = change.allocation
    if not held.device_uid or not held.started_at_ns:
        raise Rejected("AllocationChange without the allocation's device_uid or started_at_ns")
    tags = (change.cluster, change.node, "allocation", device_entity(held.device_uid), held.device_uid)
    # without an id, what makes an interval: holder, device, start
    identity = held.id or "/".join((held.workload.namespace, held.workload.pod, held.workload.container))
    point = _happened(change, tags, held.started_at_ns, identity, offset)
    what: dict[str, Scalar] = {
        "change": name_of(v1.AllocationChangeKind.DESCRIPTOR, change.kind),
        "at_ns": held.started_at_ns,
        "id": clean(identity, MAX_TAG_CHARACTERS),
    }
    return [point._replace(fields={**point.fields, **what})]


def _happened(message: Message, tags: tuple[str, ...], at_ns: int, identity: str, offset: int) -> Point:
    unique = identity.encode() or message.SerializeToString(deterministic=True)
    spread = int.from_bytes(hashlib.blake2b(unique, digest_size=8).digest(), "big") % SPREAD_NS
    return _point("event", tags, message, at_ns + spread, offset)


def _point(measurement: Measurement, tags: tuple[str, ...], message: Message, time_ns: int, offset: int) -> Point:
    columns = MEASUREMENTS[measurement].columns[type(message).__name__]
    fields: dict[str, Scalar] = {"seq": max(offset, 0)}
    fields |= flatten(columns, message)
    return Point(measurement, tuple(tag(t) for t in tags), sane(fields), checked_time(time_ns))


_MAKERS: Final[dict[str, Callable[..., list[Point]]]] = {
    "InferenceWindow": _service,
    "Finding": _finding,
    "Alert": _alert,
    "Forecast": _forecast,
    "DeviceEvent": _device_event,
    "ContextEvent": _context_event,
    "AllocationChange": _allocation_change,
}
