"""`xpulse node forget` on the embedded bus: what is deleted, and what it refuses to do."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from schemas.codec import encode
from schemas.flow import Out
from schemas.identity import device_key, node_key
from schemas.telemetry import v1
from schemas.topics import INVENTORY, SAMPLES
from xpulse.bus.embedded import EmbeddedBroker
from xpulse.bus.producer import Publisher
from xpulse.bus.reader import BusReader
from xpulse.bus.settings import Bus
from xpulse.cli.node import command
from xpulse.errors import ProblemFound, UsageError


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bus]:
    with EmbeddedBroker([(INVENTORY, 4), (SAMPLES, 4)]) as broker:
        monkeypatch.setenv("XPULSE_BUS__BROKERS", broker.bootstrap)
        monkeypatch.setenv("XPULSE_BUS__EMBEDDED", "true")
        yield Bus(brokers=broker.bootstrap, embedded=True)


def send(bus: Bus, *outs: Out) -> None:
    publisher = Publisher(bus, "test")
    publisher.publish(outs)
    publisher.close()


def node(cluster: str, name: str) -> Out:
    return encode(INVENTORY, node_key(cluster, name), v1.InventoryRecord(observed_at_ns=1, node=v1.NodeInfo(cluster=cluster, node=name)))


def device(cluster: str, name: str, uid: str) -> Out:
    info = v1.DeviceInfo(cluster=cluster, node=name, uid=uid)
    return encode(INVENTORY, device_key(cluster, name, uid), v1.InventoryRecord(observed_at_ns=1, device=info))


def left(bus: Bus) -> set[bytes]:
    found: dict[bytes, bytes | None] = {}
    with BusReader(bus) as reader:
        for partition in range(4):
            found |= {r.key or b"": r.value for r in reader.read(INVENTORY, partition)}
    return {key for key, value in found.items() if value is not None}


def test_only_the_node_and_its_devices_are_taken_off(bus: Bus) -> None:
    others = [node("c", "n10"), device("c", "n10", "v:3"), node("d", "n1"), device("d", "n1", "v:1")]
    send(bus, node("c", "n1"), device("c", "n1", "v:1"), device("c", "n1", "v:2"), *others)
    done = CliRunner().invoke(command, ["forget", "c/n1"], catch_exceptions=False)
    assert done.output == "c/n1 is forgotten, with 2 devices\n"
    assert left(bus) == {out.key for out in others}
    with pytest.raises(ProblemFound, match=r"c/n1 is not on xpulse\.inventory; on it are c/n10, d/n1"):
        CliRunner().invoke(command, ["forget", "c/n1"], catch_exceptions=False)


def test_a_node_that_reports_is_left_alone_without_force(bus: Bus) -> None:
    batch = v1.SampleBatch(cluster="c", node="n1", source="s", agent_epoch=1, sequence=1, taken_at_ns=time.time_ns())
    send(bus, node("c", "n1"), encode(SAMPLES, node_key("c", "n1"), batch))
    with pytest.raises(ProblemFound, match=r"c/n1 still reports: .* Stop its agent"):
        CliRunner().invoke(command, ["forget", "c/n1"], catch_exceptions=False)
    assert left(bus) == {b"c/n1"}
    assert CliRunner().invoke(command, ["forget", "c/n1", "--force"], catch_exceptions=False).exit_code == 0
    assert left(bus) == set()


@pytest.mark.parametrize("text", ["n1", "c/", "/n1", "c/n1/v:1"])
def test_what_names_no_node_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="CLUSTER/NODE"):
        CliRunner().invoke(command, ["forget", text], catch_exceptions=False)
