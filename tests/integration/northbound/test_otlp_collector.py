"""What is pushed is what a real OpenTelemetry Collector has: value by value, over gRPC and HTTP, with TLS, and across its death."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.catalogue import CATALOGUE, Metric
from schemas.device_state import DeviceState, EventKey, FleetState, NodeState
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import Value
from tests.integration.servers.otelcol import OtelCollector
from xpulse.northbound.otlp.open import open_push
from xpulse.northbound.otlp.push import Push
from xpulse.northbound.otlp.settings import Otlp

pytestmark = pytest.mark.integration

NODE = NodeRef("prod-a", "gpu-7")
S = 10**9
SINCE = 1_700_000_000 * S


def a_value(metric: Metric, seed: int) -> Value:
    """One within the metric's range that no other metric of the device has, where the range allows."""
    if metric.wire == "bool":
        return bool(seed % 2)
    if metric.kind == "set":
        return 0b101 << seed % 3
    if metric.states:
        return seed % 4
    low, high = metric.minimum or 0, metric.maximum
    if metric.wire in ("float", "double"):
        return low + (high - low) * (seed % 64) / 64 if high is not None else seed + 0.25
    return int(low + (seed % (int(high - low) + 1) if high is not None else 10**12 + seed))


def whole_state(at_ns: int) -> FleetState:
    """A card on which everything can be read, one of its instances with half of it, and a card that is lost."""
    links = tuple(
        v1.InterconnectLink(index=i, active=bool(i), tx_bytes=100 + i, rx_bytes=200 + i, crc_errors=i, symbol_errors=7) for i in range(3)
    )
    card = {m.name: a_value(m, m.number) for m in CATALOGUE}
    part = {m.name: a_value(m, m.number + 1) for m in CATALOGUE if not m.board_level}
    partition = v1.PartitionInfo(profile="1g.10gb", gpu_instance_id=7, compute_instance_id=0)
    info = v1.DeviceInfo(model="NVIDIA H100 80GB HBM3", serial="1652", driver_version="580.95.05", bdf="0000:1b:00.0", minor_number=0)
    instance = v1.DeviceInfo(kind=v1.DeviceKind.DEVICE_KIND_PARTITION, parent_uid="nvidia:GPU-a", partition=partition)
    events = {EventKey("xid", 79): 3, EventKey("xid", 94): 1, EventKey("lost", None): 1}
    extra = {"nvidia.odd": 1.5}
    return FleetState(
        at_ns,
        (
            DeviceState(NODE, "nvidia", "nvidia:GPU-a", 0, info, at_ns, SINCE, card, {}, links, extra, events),
            DeviceState(NODE, "nvidia", "nvidia:MIG-b", 1, instance, at_ns, SINCE, part, {"power_watts": "not_supported"}),
            DeviceState(NODE, "nvidia", "nvidia:GPU-c", 2, v1.DeviceInfo(), at_ns, SINCE, {}, {m.name: "lost" for m in CATALOGUE}),
        ),
        (NodeState(NODE, {"rack": "r1"}, {EventKey("hang", None): 2}),),
    )


def attributes(of: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in of["attributes"]}


def value_of(point: dict[str, Any]) -> float | int:
    return int(point["asInt"]) if "asInt" in point else float(point["asDouble"])


def readings(points: list[dict[str, Any]], uid: str) -> dict[str, Value]:
    """The collector's points turned back into readings by the catalogue, as someone else's consumer would."""
    mine = [(p, attributes(p)) for p in points]
    mine = [(p, a) for p, a in mine if a.get("hw.id") == uid.partition(":")[2]]
    found: dict[str, Value] = {}
    for metric in CATALOGUE:
        wanted = dict(metric.otel_attributes)
        rows = [(p, a) for p, a in mine if p["metric"]["name"] == metric.otel_name and wanted.items() <= a.items()]
        if metric.kind == "set" and rows:
            enum = {"ThrottleReason": v1.ThrottleReason, "FabricTrouble": v1.FabricTrouble}[metric.bits]
            prefix = {"ThrottleReason": "THROTTLE_REASON_", "FabricTrouble": "FABRIC_TROUBLE_"}[metric.bits]
            assert len(rows) == len(enum.items())
            found[metric.name] = sum(int(value_of(p)) << enum.Value(prefix + a["xpulse.reason"].upper()) for p, a in rows)
        elif metric.states and rows:
            (state,) = (a["xpulse.state"] for p, a in rows if value_of(p) == 1)
            prefix = {"FabricState": "FABRIC_STATE_", "RecoveryAction": "RECOVERY_ACTION_", "ComputeMode": "COMPUTE_MODE_"}[metric.states]
            found[metric.name] = getattr(v1, metric.states).Value(prefix + state.upper())
        elif rows:
            ((point, _),) = rows
            found[metric.name] = value_of(point)
    return found


def a_push(state: Callable[[int], FleetState], **settings: Any) -> Push:
    return open_push(Otlp.model_validate({"enabled": True, **settings}), NODE, state, started_at_ns=SINCE)


@pytest.fixture(params=["grpc", "http"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_every_value_arrives_as_it_is(own_collector: OtelCollector, protocol: str, compression: str) -> None:
    at = time.time_ns()
    state = whole_state(at)
    endpoint = getattr(own_collector, protocol)
    push = a_push(lambda _: state, protocol=protocol, endpoint=endpoint, compression=compression, max_points=100)
    push.start()
    push.close(20)
    totals = push.totals()
    points = own_collector.received(totals.sent)

    assert (len(points), totals.failed, totals.dropped, totals.retries) == (totals.sent, {}, {"shutdown": 0}, {})
    for device in state.devices:
        assert readings(points, device.uid) == device.values
    counters = {m.otel_name for m in CATALOGUE if m.kind == "counter"}
    for point in points:
        assert int(point["timeUnixNano"]) == at
        kind = point["metric"].get("sum")
        if point["metric"]["name"] in counters:
            assert (kind["isMonotonic"], kind["aggregationTemporality"], int(point["startTimeUnixNano"])) == (True, 2, SINCE)
    (resource,) = {str(sorted(attributes(p["resource"]).items())) for p in points}
    for wanted in ("('host.name', 'gpu-7')", "('service.name', 'xpulse-agent')", "('xpulse.node.label.rack', 'r1')"):
        assert wanted in resource


def test_status_events_and_links_arrive(own_collector: OtelCollector, protocol: str) -> None:
    state = whole_state(time.time_ns())
    push = a_push(lambda _: state, protocol=protocol, endpoint=getattr(own_collector, protocol))
    push.start()
    push.close(20)
    points = own_collector.received(push.totals().sent)

    def rows(name: str, *keys: str) -> dict[tuple[Any, ...], float | int]:
        found = [(attributes(p), p) for p in points if p["metric"]["name"] == name]
        return {tuple(a.get(key) for key in keys): value_of(p) for a, p in found}

    assert rows("xpulse.device.events", "xpulse.event.kind", "xpulse.event.code") == {("xid", "79"): 3, ("xid", "94"): 1, ("lost", None): 1}
    assert rows("xpulse.node.events", "xpulse.event.kind") == {("hang",): 2}
    assert rows("hw.status", "hw.id", "hw.state")["GPU-c", "failed"] == 1
    assert rows("xpulse.device.interconnect.link.io", "xpulse.link", "network.io.direction")["2", "transmit"] == 102
    assert rows("xpulse.vendor.nvidia.odd", "hw.id") == {("GPU-a",): 1.5}
    used, total = state.devices[0].values["memory_used_bytes"], state.devices[0].values["memory_total_bytes"]
    assert rows("hw.gpu.memory.utilization", "hw.id")["GPU-a",] == used / total


def test_a_killed_collector_gets_what_it_missed_in_order(own_collector: OtelCollector, protocol: str) -> None:
    first = time.time_ns()
    times = [first + i * S for i in range(4)]
    states = iter([whole_state(at) for at in times])
    push = a_push(lambda _: next(states), protocol=protocol, endpoint=getattr(own_collector, protocol), retry_min_seconds=0.1)

    def drained(patience_seconds: float = 30) -> None:
        deadline = time.monotonic() + patience_seconds
        while push.totals().waiting_points:
            assert time.monotonic() < deadline, push.totals()
            time.sleep(min(push.turn(), 0.1))

    push.collect()
    drained()
    own_collector.kill()
    push.collect()
    push.turn()
    push.collect()
    totals = push.totals()
    assert totals.waiting_points == 2 * totals.sent
    assert totals.trouble
    own_collector.start()
    drained()
    push._transport.close()
    totals = push.totals()
    points = own_collector.received(totals.sent)
    power = [p for p in points if p["metric"]["name"] == "hw.power"]
    assert [int(p["timeUnixNano"]) for p in power] == times[:3]
    assert (len(points), totals.dropped, totals.failed) == (totals.sent, {}, {})
    assert sum(totals.retries.values()) >= 1


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a server's certificate for 127.0.0.1 and a client's, made by openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on PATH; it makes the certificates of this test")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl(*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    for name in ("server", "client"):
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
        openssl(*new, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}", *signed)
    return folder


@pytest.fixture
def tls_collector(own_collector: OtelCollector, certificates: Path) -> Iterator[OtelCollector]:
    """One that asks for a client's certificate; `own_collector` is there to skip where none can be built."""
    files = {"cert_file": "server.pem", "key_file": "server.key", "client_ca_file": "ca.pem"}
    with OtelCollector({key: certificates / name for key, name in files.items()}) as collector:
        yield collector


def test_tls_with_certificates_of_both_sides(tls_collector: OtelCollector, certificates: Path, protocol: str) -> None:
    state = whole_state(time.time_ns())
    ours = {"ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "client.key"}
    files = {key: certificates / name for key, name in ours.items()}
    endpoint = getattr(tls_collector, protocol)
    push = a_push(lambda _: state, protocol=protocol, endpoint=endpoint, headers={"authorization": "Bearer t"}, **files)
    push.start()
    push.close(20)
    assert push.totals().failed == {}
    assert len(tls_collector.received(push.totals().sent)) == push.totals().sent > 0


def test_an_endpoint_that_cannot_prove_itself_gets_nothing(tls_collector: OtelCollector, protocol: str) -> None:
    push = a_push(lambda _: whole_state(time.time_ns()), protocol=protocol, endpoint=getattr(tls_collector, protocol), timeout_seconds=2)
    push.start()
    push.close(5)
    totals = push.totals()
    assert (totals.sent, totals.failed) == (0, {})
    assert totals.dropped["shutdown"] > 0
    assert "certificate" in totals.trouble.lower()


def test_an_agent_without_a_bus_pushes_what_its_plugin_reads(own_collector: OtelCollector, tmp_path: Path) -> None:
    plugins = {"nvidia": {"enabled": False}, "kernel": {"enabled": False}, "simulated": {"settings": {"nodes": 1, "devices_per_node": 2}}}
    settings = {
        "cluster": "prod-a",
        "node": "gpu-7",
        "state_dir": str(tmp_path),
        "health": {"port": 0},
        "northbound": {"kafka": False, "otlp": {"enabled": True, "endpoint": own_collector.http, "interval_seconds": 1}},
        "collectors": {"plugins": plugins},
    }
    file = tmp_path / "xpulse.yaml"
    file.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "xpulse.cli.main", "--config", str(file), "agent"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as agent:
        try:
            points = own_collector.received(50)
        finally:
            agent.terminate()
            said = agent.communicate(timeout=10)[1]
    assert agent.returncode == 0, said
    assert {attributes(p)["xpulse.simulated"] for p in points} == {True}
    assert len({attributes(p)["hw.id"] for p in points}) == 2
    assert {"hw.power", "hw.gpu.utilization", "hw.status"} <= {p["metric"]["name"] for p in points}
