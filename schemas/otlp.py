"""A FleetState as OTLP metric requests, each with at most a given number of points.

Needs the extra `otlp` (opentelemetry-proto); nothing else of the agent imports it, so an agent that does not push pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, NumberDataPoint, ScopeMetrics

from schemas.device_state import FleetState, NodeState
from schemas.identity import NodeRef
from schemas.otel import NODE_EVENTS, Attributes, Point, Stream, identity, of_events, points

SERVICE: Final = "xpulse-agent"
_LARGEST: Final = (1 << 63) - 1
"""as_int is an sfixed64; a larger counter goes as a double."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who speaks. `started_at_ns` (ns UTC) is where the counts of events begin; `kubernetes` says that `node` is the name of a Kubernetes
    node; `attributes` are the user's own and win over ours."""

    node: NodeRef
    version: str
    instance_id: str
    started_at_ns: int
    kubernetes: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


class Request(NamedTuple):
    """One message to send, and how many data points it holds."""

    message: ExportMetricsServiceRequest
    points: int


_Row = tuple[tuple[NodeRef, str], Stream, Attributes, Point]
"""Of which (node, source), stream, identity of the device, and the point."""


def requests(fleet: FleetState, origin: Origin, max_points: int) -> Iterator[Request]:
    """The whole state: one resource for each node, one scope for each source. Empty where nothing is known."""
    labels = {node.node: node.labels for node in fleet.nodes}
    page = _Page(origin, labels)
    for where, stream, device, point in _rows(fleet, origin):
        if page.count == max_points:
            yield Request(page.message, page.count)
            page = _Page(origin, labels)
        page.add(where, stream, device, point)
    if page.count:
        yield Request(page.message, page.count)


class _Page:
    """One request being filled; rows of one node, source and stream come together."""

    def __init__(self, origin: Origin, labels: Mapping[NodeRef, Mapping[str, str]]) -> None:
        self.message = ExportMetricsServiceRequest()
        self.count = 0
        self._origin, self._labels = origin, labels
        self._node: NodeRef | None = None
        self._source: str | None = None
        self._metric: Metric | None = None

    def add(self, where: tuple[NodeRef, str], stream: Stream, device: Attributes, point: Point) -> None:
        node, source = where
        if node != self._node:
            resource = self.message.resource_metrics.add()
            resource.resource.attributes.extend(
                _pair(*entry) for entry in _resource(node, self._origin, self._labels.get(node, {})).items()
            )
            self._node, self._source = node, None
        if source != self._source:
            scope = self.message.resource_metrics[-1].scope_metrics.add()
            scope.scope.name, scope.scope.version = f"xpulse.{source}", self._origin.version
            self._source, self._metric = source, None
        if self._metric is None or self._metric.name != stream.name:
            self._metric = _metric(self.message.resource_metrics[-1].scope_metrics[-1], stream)
        _put(self._metric, stream, device, point)
        self.count += 1


def _resource(node: NodeRef, origin: Origin, labels: Mapping[str, str]) -> dict[str, str]:
    found = {
        "host.name": node.node,
        "service.name": SERVICE,
        "service.version": origin.version,
        "service.instance.id": origin.instance_id,
        "xpulse.cluster": node.cluster,
        **{f"xpulse.node.label.{key}": value for key, value in labels.items()},
    }
    if origin.kubernetes:
        found["k8s.cluster.name"] = node.cluster
        if node == origin.node:  # another node's name may be anything: an exporter's address, a host outside the cluster
            found["k8s.node.name"] = node.node
    return {key: value for key, value in (found | dict(origin.attributes)).items() if value}


def _rows(fleet: FleetState, origin: Origin) -> Iterator[_Row]:
    """Every point, those of one node, source and stream together."""
    places: dict[tuple[NodeRef, str], dict[str, list[tuple[Attributes, Point]]]] = {}
    for device in fleet.devices:
        streams = places.setdefault((device.node, device.source), {})
        who = identity(device)
        for point in points(device, origin.started_at_ns):
            streams.setdefault(point.stream.name, []).append((who, point))
    for node in fleet.nodes:
        for point in _of_node(node, origin, fleet.at_ns):
            places.setdefault((node.node, "agent"), {}).setdefault(point.stream.name, []).append(((), point))
    for where in sorted(places, key=lambda place: place[0]):
        for rows in places[where].values():
            for who, point in rows:
                yield where, rows[0][1].stream, who, point


def _of_node(node: NodeState, origin: Origin, at_ns: int) -> Iterable[Point]:
    return of_events(NODE_EVENTS, node.events, origin.started_at_ns, at_ns)


def _open(message: ExportMetricsServiceRequest, where: tuple[NodeRef, str], origin: Origin, labels: Mapping[str, str]) -> ScopeMetrics:
    node, source = where
    found = {
        "service.name": SERVICE,
        "service.instance.id": origin.instance_id,
        "host.name": node.node,
        "xpulse.cluster": node.cluster,
        **{f"xpulse.node.label.{key}": value for key, value in labels.items()},
    }
    if origin.version:
        found["service.version"] = origin.version
    if origin.kubernetes:
        found["k8s.cluster.name"] = node.cluster
        if node == origin.node:  # another node's name may be anything: an exporter's address, a host outside the cluster
            found["k8s.node.name"] = node.node
    for resource in message.resource_metrics:
        if resource.resource.attributes[0].value.string_value == node.node and node.cluster in (
            pair.value.string_value for pair in resource.resource.attributes if pair.key == "xpulse.cluster"
        ):
            break
    else:
        resource = message.resource_metrics.add()
        found |= origin.attributes
        first = ("host.name", found.pop("host.name"))
        resource.resource.attributes.extend(_pair(key, value) for key, value in (first, *found.items()) if value)
    scope = resource.scope_metrics.add()
    scope.scope.name, scope.scope.version = f"xpulse.{source}", origin.version
    return scope


def _metric(scope: ScopeMetrics, stream: Stream) -> Metric:
    metric = scope.metrics.add(name=stream.name, unit=stream.unit, description=stream.meaning)
    if stream.instrument == "gauge":
        metric.gauge.SetInParent()
    else:
        metric.sum.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        metric.sum.is_monotonic = stream.instrument == "counter"
    return metric


def _put(metric: Metric, stream: Stream, device: Attributes, point: Point) -> None:
    into = metric.gauge.data_points if stream.instrument == "gauge" else metric.sum.data_points
    value: NumberDataPoint = into.add(time_unix_nano=point.time_ns, start_time_unix_nano=point.start_ns)
    if isinstance(point.value, int) and point.value <= _LARGEST:
        value.as_int = point.value
    else:
        value.as_double = point.value
    value.MergeFromString(_packed(device) + _packed(point.attributes))


@lru_cache(maxsize=8192)
def _packed(attributes: Attributes) -> bytes:
    """The attributes on the wire: each set is in many points, and making its messages anew would be nine tenths of the work."""
    return NumberDataPoint(attributes=[_pair(key, entry) for key, entry in attributes]).SerializeToString()


def _pair(key: str, value: str | int | bool) -> KeyValue:
    if isinstance(value, str):
        return KeyValue(key=key, value=AnyValue(string_value=value))
    return KeyValue(key=key, value=AnyValue(bool_value=value) if isinstance(value, bool) else AnyValue(int_value=value))
