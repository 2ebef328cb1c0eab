"""The load is what a fleet of agents would publish: gapless, thin with every 60th full, each replica a fleet of its own."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.load import CLUSTER, SECOND_NS, Load, Sent, Shape, make
from schemas import topics
from schemas.codec import HEADERS, decode
from schemas.flow import Record
from schemas.telemetry import v1

SHAPE = Shape(templates=2, replicas=3, devices=8, ticks=61)
ENDS_AT_NS = 1_790_000_000_000_000_000


@pytest.fixture(scope="module")
def load() -> Load:
    return make(SHAPE, ends_at_ns=ENDS_AT_NS)


def batches(load: Load) -> list[v1.SampleBatch]:
    return list(load.batches(SHAPE.ticks))


def test_every_message_is_one_that_our_roles_accept(load: Load) -> None:
    sent = [*load.first(), *load.tick(0), *load.tick(60), *load.closing(60)]
    messages = [decode(Record(m.topic, 0, 0, m.key, m.value, HEADERS, 1)) for m in sent]
    assert {topics.INVENTORY, topics.SAMPLES, topics.ALLOCATIONS} <= {m.topic for m in sent}
    assert None not in messages


def test_each_node_has_a_gapless_sequence_at_one_batch_a_second(load: Load) -> None:
    nodes: dict[str, list[v1.SampleBatch]] = {}
    for batch in batches(load):
        nodes.setdefault(batch.node, []).append(batch)
    assert len(nodes) == SHAPE.nodes
    for found in nodes.values():
        assert [b.sequence for b in found] == list(range(SHAPE.ticks))
        assert [b.taken_at_ns for b in found] == [ENDS_AT_NS - (SHAPE.ticks - t) * SECOND_NS for t in range(SHAPE.ticks)]


def test_devices_of_all_replicas_differ_and_belong_to_one_node(load: Load) -> None:
    node_of = {(d.uid, b.node) for b in batches(load) for d in b.devices}
    assert len(node_of) == SHAPE.samples_per_tick
    assert len({uid for uid, _ in node_of}) == SHAPE.samples_per_tick
    assert all(uid.startswith("nvidia:") for uid, _ in node_of)


def test_samples_are_thin_and_every_60th_is_full(load: Load) -> None:
    full = Counter(b.sequence for b in batches(load) for d in b.devices if d.full)
    assert full[0] == full[60] == SHAPE.samples_per_tick
    assert sum(full.values()) < SHAPE.samples_per_tick * 4


def test_inventory_names_every_node_and_device(load: Load) -> None:
    records = [v1.InventoryRecord.FromString(m.value) for m in load.first()]
    assert {r.device.uid for r in records if r.HasField("device")} == {d.uid for b in batches(load) for d in b.devices}
    assert {r.node.node for r in records if r.HasField("node")} == {b.node for b in batches(load)}


def test_allocations_come_every_ten_seconds_of_every_node(load: Load) -> None:
    def nodes(messages: list[Sent]) -> set[bytes]:
        return {m.key for m in messages if m.topic == topics.ALLOCATIONS}

    for start in range(0, SHAPE.ticks - 10, 10):
        assert len(nodes([m for t in range(start, start + 10) for m in load.tick(t)])) == SHAPE.nodes


def test_closing_says_every_nodes_allocations_as_of_that_tick(load: Load) -> None:
    closing = [v1.AllocationSnapshot.FromString(m.value) for m in load.closing(33)]
    assert {(s.cluster, s.node) for s in closing} == {(CLUSTER, b.node) for b in batches(load)}
    assert {s.taken_at_ns for s in closing} == {load.started_at_ns + 33 * SECOND_NS}


def test_counts_are_those_of_the_messages(load: Load) -> None:
    assert load.counts(12) == Counter(m.topic for t in range(12) for m in load.tick(t))


def test_more_replicas_than_names_are_refused() -> None:
    with pytest.raises(ValueError, match="257 replicas"):
        make(Shape(1, 257, 8, 1), ends_at_ns=ENDS_AT_NS)
