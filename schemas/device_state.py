"""One device as the outside sees it now: what every northbound encoder (OpenMetrics, OTLP, DCGM's names) is given, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import Reason, Value


class EventKey(NamedTuple):
    """What an agent counts events by. `kind` is the lower-case name (xid, lost ...), `code` the vendor's number, None without one."""

    kind: str
    code: int | None


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Readings that are not stale, by catalogue name and in its units. `values` and `absences` share no name; a name in neither was
    never said. `since_ns` is when the agent first saw the device in this counter epoch (boot id, driver load): the start of OTLP's
    cumulative sums. `events` counts what happened to the device since the agent started. Times are ns UTC."""

    node: NodeRef
    source: str
    uid: str
    index: int
    info: v1.DeviceInfo
    taken_at_ns: int
    since_ns: int
    values: Mapping[str, Value]
    absences: Mapping[str, Reason] = field(default_factory=dict)
    links: tuple[v1.InterconnectLink, ...] = ()
    vendor_metrics: Mapping[str, float] = field(default_factory=dict)
    events: Mapping[EventKey, int] = field(default_factory=dict)
    simulated: bool = False

    @property
    def partition(self) -> bool:
        """A part of another device (MIG instance, vGPU ...)."""
        return self.info.kind == v1.DeviceKind.DEVICE_KIND_PARTITION


@dataclass(frozen=True, slots=True)
class NodeState:
    """What is not of one device: events of whole sources (hang, source_unavailable, an Xid of an unknown card), counted."""

    node: NodeRef
    labels: Mapping[str, str] = field(default_factory=dict)
    events: Mapping[EventKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FleetState:
    """Everything one agent knows at `at_ns`. Devices are ordered by node, index, uid; partitions follow their parents' order."""

    at_ns: int
    devices: tuple[DeviceState, ...] = ()
    nodes: tuple[NodeState, ...] = ()
