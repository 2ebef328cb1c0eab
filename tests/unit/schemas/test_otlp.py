"""OTLP encoding: names of the conventions, right kinds and times, absent is no point, pages of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, NumberDataPoint

from schemas.catalogue import CATALOGUE
from schemas.catalogue import Metric as Row
from schemas.device_state import DeviceState, EventKey, FleetState, NodeState
from schemas.identity import NodeRef
from schemas.otel import STATES, STREAMS, State, status
from schemas.otlp import Origin, Request, requests
from schemas.telemetry import v1
from schemas.values import Reason, Value

NODE = NodeRef("c", "n1")
S = 10**9
AT, SINCE, STARTED = 1000 * S, 400 * S, 300 * S
ORIGIN = Origin(NODE, "1.2.3", "c/n1", STARTED)
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def device(
    values: Mapping[str, Value],
    *,
    uid: str = "nvidia:GPU-1",
    info: v1.DeviceInfo | None = None,
    absences: Mapping[str, Reason] | None = None,
    links: tuple[v1.InterconnectLink, ...] = (),
    vendor: Mapping[str, float] | None = None,
    events: Mapping[EventKey, int] | None = None,
    node: NodeRef = NODE,
    source: str = "nvidia",
    simulated: bool = False,
) -> DeviceState:
    return DeviceState(
        node,
        source,
        uid,
        0,
        info or v1.DeviceInfo(model="H100", serial="S1", driver_version="580.1"),
        AT,
        SINCE,
        values,
        absences or {},
        links,
        vendor or {},
        events or {},
        simulated,
    )


def fleet(*devices: DeviceState, nodes: tuple[NodeState, ...] = ()) -> FleetState:
    return FleetState(AT, devices, nodes)


def encode(*devices: DeviceState, nodes: tuple[NodeState, ...] = (), origin: Origin = ORIGIN) -> Request:
    (request,) = requests(fleet(*devices, nodes=nodes), origin, 10_000)
    return request


def plain(attributes: Iterable[KeyValue]) -> dict[str, object]:
    return {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in attributes}


def metrics(request: Request) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for resource in request.message.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                assert metric.name not in found
                found[metric.name] = metric
    return found


def rows(metric: Metric) -> list[NumberDataPoint]:
    return list(metric.sum.data_points if metric.HasField("sum") else metric.gauge.data_points)


def value(point: NumberDataPoint) -> float | int:
    return point.as_int if point.WhichOneof("value") == "as_int" else point.as_double


def by(metric: Metric, key: str) -> dict[object, float | int]:
    return {plain(point.attributes)[key]: value(point) for point in rows(metric)}


def test_a_gauge_is_a_double_at_the_time_of_the_read() -> None:
    metric = metrics(encode(device({"power_watts": 300.5})))["hw.power"]
    (point,) = metric.gauge.data_points
    assert (metric.unit, point.as_double, point.time_unix_nano, point.start_time_unix_nano) == ("W", 300.5, AT, 0)
    assert plain(point.attributes) == {
        "hw.id": "GPU-1",
        "hw.type": "gpu",
        "hw.name": "nvidia0",
        "hw.vendor": "nvidia",
        "hw.model": "H100",
        "hw.serial_number": "S1",
        "hw.driver_version": "580.1",
    }


def test_a_counter_is_a_monotonic_cumulative_sum_since_its_epoch() -> None:
    found = metrics(encode(device({"energy_joules": 12.5, "pcie_tx_bytes": 7, "pcie_rx_bytes": 9})))
    energy = found["hw.energy"].sum
    assert (energy.is_monotonic, energy.aggregation_temporality) == (True, CUMULATIVE)
    assert (energy.data_points[0].as_double, energy.data_points[0].start_time_unix_nano) == (12.5, SINCE)
    assert by(found["hw.gpu.io"], "network.io.direction") == {"transmit": 7, "receive": 9}
    assert all(point.WhichOneof("value") == "as_int" for point in rows(found["hw.gpu.io"]))


def test_memory_is_an_updowncounter_and_its_share_is_derived() -> None:
    found = metrics(encode(device({"memory_used_bytes": 20, "memory_total_bytes": 80})))
    for name in ("hw.gpu.memory.usage", "hw.gpu.memory.limit"):
        assert (found[name].sum.is_monotonic, found[name].sum.aggregation_temporality) == (False, CUMULATIVE)
    assert value(rows(found["hw.gpu.memory.utilization"])[0]) == 0.25


def test_the_share_of_memory_needs_both() -> None:
    assert "hw.gpu.memory.utilization" not in metrics(encode(device({"memory_used_bytes": 20})))
    assert "hw.gpu.memory.utilization" not in metrics(encode(device({"memory_total_bytes": 20})))


def test_fields_of_one_name_are_told_apart_by_attributes() -> None:
    found = metrics(
        encode(
            device(
                {
                    "utilization_ratio": 0.5,
                    "encoder_utilization_ratio": 0.25,
                    "decoder_utilization_ratio": 0.0,
                    "temperature_celsius": 60.0,
                    "memory_temperature_celsius": 70.0,
                    "temperature_slowdown_celsius": 90.0,
                    "temperature_shutdown_celsius": 95.0,
                    "ecc_corrected_volatile_errors": 3,
                    "ecc_uncorrected_volatile_errors": 0,
                }
            )
        )
    )
    assert by(found["hw.gpu.utilization"], "hw.gpu.task") == {"general": 0.5, "encoder": 0.25, "decoder": 0.0}
    assert by(found["hw.temperature"], "hw.sensor_location") == {"core": 60.0, "memory": 70.0}
    assert by(found["hw.temperature.limit"], "hw.limit_type") == {"high.degraded": 90.0, "high.critical": 95.0}
    assert by(found["hw.errors"], "error.type") == {"corrected": 3, "uncorrected": 0}


def test_an_absence_is_no_point() -> None:
    absences: dict[str, Reason] = {"power_watts": "no_permission", "fan_ratio": "not_supported"}
    found = metrics(encode(device({"temperature_celsius": 1.0}, absences=absences)))
    assert {"hw.power", "hw.fan.speed_ratio"} & found.keys() == set()


def test_a_bit_set_is_a_point_for_each_reason_and_an_unknown_bit_is_shown() -> None:
    found = by(metrics(encode(device({"throttle_reasons": 0b1 | 1 << 5 | 1 << 20})))["xpulse.device.throttle.reasons"], "xpulse.reason")
    assert {reason for reason, on in found.items() if on} == {"idle", "software_thermal", "bit_20"}
    assert found["hardware_power_brake"] == 0


def test_a_state_is_a_point_for_each_state() -> None:
    found = by(metrics(encode(device({"fabric_state": 3})))["xpulse.device.fabric.state"], "xpulse.state")
    assert found == {"not_supported": 0, "not_started": 0, "in_progress": 0, "completed": 1, "failed": 0}
    later = by(metrics(encode(device({"fabric_state": 9})))["xpulse.device.fabric.state"], "xpulse.state")
    assert {state for state, on in later.items() if on} == {"state_9"}


def test_a_flag_is_an_integer() -> None:
    (point,) = rows(metrics(encode(device({"ecc_enabled": True})))["xpulse.device.ecc.enabled"])
    assert (point.WhichOneof("value"), point.as_int) == ("as_int", 1)


def test_a_counter_beyond_64_bits_signed_is_a_double() -> None:
    (point,) = rows(metrics(encode(device({"pcie_tx_bytes": (1 << 64) - 1})))["hw.gpu.io"])
    assert point.as_double == float((1 << 64) - 1)
    (point,) = rows(metrics(encode(device({"pcie_tx_bytes": (1 << 63) - 1})))["hw.gpu.io"])
    assert point.as_int == (1 << 63) - 1


def test_a_partition_names_its_parent_and_its_instance() -> None:
    info = v1.DeviceInfo(
        kind=v1.DeviceKind.DEVICE_KIND_PARTITION,
        parent_uid="nvidia:GPU-1",
        partition=v1.PartitionInfo(profile="1g.10gb", gpu_instance_id=7, compute_instance_id=0),
    )
    point = rows(metrics(encode(device({"memory_used_bytes": 1}, uid="nvidia:MIG-9", info=info)))["hw.gpu.memory.usage"])[0]
    assert plain(point.attributes) == {
        "hw.id": "MIG-9",
        "hw.type": "gpu",
        "hw.name": "nvidia:1g.10gb",
        "hw.vendor": "nvidia",
        "hw.parent": "GPU-1",
        "xpulse.partition.profile": "1g.10gb",
        "xpulse.partition.gpu_instance_id": 7,
        "xpulse.partition.compute_instance_id": 0,
    }


def test_a_simulated_device_says_so() -> None:
    (point,) = rows(metrics(encode(device({"power_watts": 1.0}, simulated=True)))["hw.power"])
    assert plain(point.attributes)["xpulse.simulated"] is True


def test_links_have_points_of_their_own() -> None:
    link = v1.InterconnectLink(index=4, active=True, tx_bytes=5, rx_bytes=6, crc_errors=0, symbol_errors=2, speed_bytes_per_second=2.0**35)
    found = metrics(encode(device({}, links=(link, v1.InterconnectLink(index=5, active=False)))))
    assert by(found["xpulse.device.interconnect.link.active"], "xpulse.link") == {4: 1, 5: 0}
    assert by(found["xpulse.device.interconnect.link.io"], "network.io.direction") == {"transmit": 5, "receive": 6}
    assert by(found["xpulse.device.interconnect.link.errors"], "error.type") == {"crc": 0, "symbol": 2}
    assert found["xpulse.device.interconnect.link.errors"].sum.is_monotonic
    assert by(found["xpulse.device.interconnect.link.speed"], "xpulse.link") == {4: 2.0**35}


def test_events_are_sums_from_the_agents_start() -> None:
    events = {EventKey("xid", 79): 2, EventKey("lost", None): 1}
    found = metrics(encode(device({"power_watts": 1.0}, events=events), nodes=(NodeState(NODE, {}, {EventKey("hang", None): 4}),)))
    xpulse = found["xpulse.device.events"].sum
    assert (xpulse.is_monotonic, xpulse.aggregation_temporality) == (True, CUMULATIVE)
    assert [(p.as_int, plain(p.attributes).get("xpulse.event.code"), p.start_time_unix_nano) for p in xpulse.data_points] == [
        (1, None, STARTED),
        (2, 79, STARTED),
    ]
    (hang,) = rows(found["xpulse.node.events"])
    assert (hang.as_int, plain(hang.attributes)) == (4, {"xpulse.event.kind": "hang"})


def test_vendor_extras_get_a_clean_name() -> None:
    assert value(rows(metrics(encode(device({}, vendor={"NV foo/Bar": 1.5})))["xpulse.vendor.nv_foo_bar"])[0]) == 1.5


def test_the_resource_is_the_node() -> None:
    (resource,) = encode(device({"power_watts": 1.0}), nodes=(NodeState(NODE, {"rack": "r1"}),)).message.resource_metrics
    assert plain(resource.resource.attributes) == {
        "host.name": "n1",
        "service.name": "xpulse-agent",
        "service.version": "1.2.3",
        "service.instance.id": "c/n1",
        "xpulse.cluster": "c",
        "xpulse.node.label.rack": "r1",
    }
    assert [(scope.scope.name, scope.scope.version) for scope in resource.scope_metrics] == [("xpulse.nvidia", "1.2.3")]


def test_kubernetes_names_only_its_own_node_and_the_users_attributes_win() -> None:
    other = NodeRef("c", "far")
    origin = Origin(NODE, "", "i", STARTED, kubernetes=True, attributes={"service.name": "mine", "deployment.environment.name": "prod"})
    request = encode(device({"power_watts": 1.0}, node=other), device({"power_watts": 2.0}), origin=origin)
    far, here = (plain(resource.resource.attributes) for resource in request.message.resource_metrics)
    assert (here["host.name"], here["k8s.node.name"], here["k8s.cluster.name"]) == ("n1", "n1", "c")
    assert (here["service.name"], here["deployment.environment.name"]) == ("mine", "prod")
    assert "service.version" not in here
    assert "k8s.node.name" not in far


def test_sources_of_one_node_are_scopes_of_one_resource() -> None:
    power = {"power_watts": 1.0}
    request = encode(device(power), device(power, source="dcgm"), device(power, uid="nvidia:GPU-2"))
    (resource,) = request.message.resource_metrics
    assert [(s.scope.name, [len(rows(m)) for m in s.metrics if m.name == "hw.power"]) for s in resource.scope_metrics] == [
        ("xpulse.nvidia", [2]),
        ("xpulse.dcgm", [1]),
    ]


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_pages_hold_at_most_so_many_points_and_lose_none(most: int) -> None:
    devices = [device({"power_watts": float(i), "energy_joules": 1.0, "throttle_reasons": 0}, uid=f"nvidia:GPU-{i}") for i in range(3)]
    whole = encode(*devices)
    pages = list(requests(fleet(*devices), ORIGIN, most))
    assert [page.points for page in pages[:-1]] == [most] * (len(pages) - 1)
    assert all(sum(len(rows(m)) for m in metrics(page).values()) == page.points <= most for page in pages)

    def points(request: Request) -> list[tuple[str, bytes]]:
        return [(name, point.SerializeToString()) for name, metric in metrics(request).items() for point in rows(metric)]

    assert [row for page in pages for row in points(page)] == points(whole)


def test_nothing_known_is_no_request() -> None:
    assert list(requests(fleet(nodes=(NodeState(NODE),)), ORIGIN, 10)) == []


@pytest.mark.parametrize(
    ("values", "absences", "expected"),
    [
        ({"power_watts": 1.0}, {}, "ok"),
        ({}, {"power_watts": "lost"}, "failed"),
        ({}, {"power_watts": "no_permission"}, None),
        ({"remapped_rows_failed": True, "ecc_sram_threshold_exceeded": True}, {}, "failed"),
        ({"recovery_action": v1.RecoveryAction.RECOVERY_ACTION_RESET_DEVICE}, {}, "failed"),
        ({"recovery_action": 7}, {}, "failed"),  # a reboot of the system, by the newest nvml.h
        ({"recovery_action": v1.RecoveryAction.RECOVERY_ACTION_DRAIN_P2P}, {}, "degraded"),
        ({"ecc_sram_threshold_exceeded": True, "remapped_rows_pending": True}, {}, "predicted_failure"),
        ({"remapped_rows_pending": True}, {}, "degraded"),
        ({"throttle_reasons": 1 << v1.ThrottleReason.THROTTLE_REASON_HARDWARE_THERMAL}, {}, "degraded"),
        ({"throttle_reasons": 1 << v1.ThrottleReason.THROTTLE_REASON_SOFTWARE_POWER_CAP}, {}, "ok"),
    ],
    ids=str,
)
def test_status_is_the_worst_that_is_said(values: Mapping[str, Value], absences: Mapping[str, Reason], expected: State | None) -> None:
    said = device(values, absences=absences)
    assert status(said) == expected
    metric = metrics(encode(said)).get("hw.status")
    assert (by(metric, "hw.state") if metric else {}) == ({} if expected is None else {s: int(s == expected) for s in STATES})


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.name)
def test_every_metric_has_a_stream_of_its_unit_and_kind(row: Row) -> None:
    stream = STREAMS[row.otel_name]
    assert stream.unit == row.unit
    assert (stream.instrument == "counter") == (row.kind == "counter")
    number: Value = 1 if row.wire != "float" else 0.5
    metric = metrics(encode(device({row.name: number})))[row.otel_name]
    assert metric.HasField("gauge" if stream.instrument == "gauge" else "sum")
    assert any(value(point) == number for point in rows(metric))
