"""Nodes and devices come and go by the inventory: a node that was taken off it is neither silent nor remembered."""

from __future__ import annotations

from collections.abc import Sequence

from schemas import topics
from schemas.codec import HEADERS, decode
from schemas.flow import Emitted, Out, Partition, Record, Tick
from schemas.identity import device_key, node_key, partition_of
from schemas.telemetry import v1
from streams.processors.detect import DetectProcessor
from streams.settings import Detect
from tests.unit.streams.detect.given import ALL, GIB, MemoryReader, at, batch, record

NODE, DEVICE = node_key("c1", "n1"), device_key("c1", "n1", "v:1")


def processor(*records: Record, owned: frozenset[Partition] = ALL) -> DetectProcessor:
    made = DetectProcessor.of(Detect(), rebuild_seconds=120)
    made.restore(MemoryReader(*records), owned)
    return made


def findings(emitted: Sequence[Emitted]) -> set[tuple[str, bool]]:
    found = set()
    for out in emitted:
        assert isinstance(out, Out)
        message = decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, 0))
        assert isinstance(message, v1.Finding)
        found.add((message.rule, message.active))
    return found


def memory(seconds: float, used: int = 78) -> Record:
    device = v1.DeviceSample(uid="v:1", memory_used_bytes=used * GIB, memory_total_bytes=80 * GIB)
    return record(topics.SAMPLES, batch(seconds, device), seconds)


def node(seconds: float, offset: int = 0) -> Record:
    said = v1.InventoryRecord(observed_at_ns=at(seconds), node=v1.NodeInfo(cluster="c1", node="n1"))
    return record(topics.INVENTORY, said, seconds, key=NODE)._replace(offset=offset)


def device(seconds: float, offset: int = 0, index: int = 5) -> Record:
    info = v1.DeviceInfo(cluster="c1", node="n1", uid="v:1", index=index)
    return record(topics.INVENTORY, v1.InventoryRecord(observed_at_ns=at(seconds), device=info), seconds, key=DEVICE)._replace(
        offset=offset
    )


def gone(seconds: float, key: bytes = NODE, offset: int = 1) -> Record:
    return Record(topics.INVENTORY, partition_of(key, 4), offset, key, None, HEADERS, at(seconds))


def standing(*emitted: Emitted) -> list[Record]:
    found = []
    for out in emitted:
        assert isinstance(out, Out)
        finding = v1.Finding.FromString(out.value or b"")
        alert = v1.Alert(fingerprint="f", episode="e", status="ALERT_STATUS_FIRING", at_ns=at(0))
        found.append(record(topics.ALERT_STATE, v1.AlertState(alert=alert, last_finding=finding), 0, key=out.key, partition=0))
    return found


def test_a_node_that_is_taken_off_the_inventory_ends_what_stands_of_it_and_is_forgotten() -> None:
    given = processor()
    assert findings(given.process([memory(0)])) == {("memory_nearly_full", True)}
    assert findings(given.tick(Tick(at(60)))) == {("node_silent", True)}
    assert findings(given.process([gone(90)])) == {("memory_nearly_full", False), ("node_silent", False)}
    assert given.watched == (0, 0)
    assert findings(given.tick(Tick(at(200)))) == set()


def test_what_was_said_before_a_node_was_forgotten_does_not_bring_it_back_and_what_comes_after_does() -> None:
    given = processor()
    given.process([gone(90)])
    assert findings(given.process([memory(80)])) == set()
    assert given.dropped == {"forgotten_node": 1}
    assert given.watched == (0, 0)
    assert findings(given.process([memory(91)])) == {("memory_nearly_full", True)}


def test_a_node_that_has_spoken_since_stays() -> None:
    given = processor()
    given.process([memory(100)])
    assert findings(given.process([gone(90)])) == set()
    assert given.watched == (1, 1)


def test_a_deletion_while_detect_was_down_ends_the_standing_finding() -> None:
    before = processor()
    before.process([memory(0)])
    silent = list(before.tick(Tick(at(60))))
    log = [node(-900), device(-900), gone(90), gone(90, DEVICE)]
    after = processor(*log, *standing(*silent))
    assert findings(after.process(log)) == {("node_silent", False)}
    assert findings(after.tick(Tick(at(200)))) == set()


def test_a_deletion_that_was_taken_back_before_a_restart_does_nothing() -> None:
    log = [node(-900), gone(-800), node(-700, 2)]
    given = processor(*log)
    given.process(log)
    given.tick(Tick(at(0)))
    assert findings(given.tick(Tick(at(60)))) == {("node_silent", True)}


def test_a_device_alone_is_forgotten_with_what_stands_of_it() -> None:
    given = processor()
    given.process([memory(0)])
    assert findings(given.process([gone(10, DEVICE)])) == {("memory_nearly_full", False)}
    assert given.watched == (1, 0)


def test_a_node_is_expected_and_a_device_named_as_soon_as_the_inventory_says_so() -> None:
    given = processor()
    given.process([node(0, 7), device(0, 7)])
    assert given.watched == (1, 1)
    given.tick(Tick(at(1)))
    assert findings(given.tick(Tick(at(60)))) == {("node_silent", True)}


def test_the_inventory_of_another_processs_nodes_is_left_alone() -> None:
    home = partition_of(NODE, 4)
    given = processor(owned=frozenset(p for p in ALL if p.partition != home))
    assert findings(given.process([node(0, 7), device(0, 7), gone(1, DEVICE, 8)])) == set()
    assert given.watched == (0, 0)
