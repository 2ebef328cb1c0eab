"""The feed's short cut past the bytes says what the bytes say, and the days run through the roles as they are shipped."""

from __future__ import annotations

import numpy as np
import pytest

from bench.fleet_feed import STEP_SECONDS, Feed, ViewReader
from bench.fleet_plan import STARTED_AT_NS
from bench.fleet_run import run
from collectors.simulated.fleet import Fleet
from collectors.simulated.settings import Simulated
from schemas import topics
from schemas.codec import decode
from schemas.telemetry import v1
from streams.operators.detect.columns import Reader, Taken
from streams.operators.detect.fleet import Fleet as Watched
from streams.operators.detect.table import Table
from streams.processors.detect import DetectProcessor
from streams.settings import Detect

FAULTS = ("device_lost@60s+60s:card=3", "driver_hang@100s+60s:card=4", "ecc_burst@30s+90s:card=5", "thermal@10s+200s:card=6")


CLUSTER = "bench"


def fleet(*faults: str, cluster: str = CLUSTER) -> Fleet:
    return Fleet(Simulated(nodes=2, devices_per_node=4, seed=3, faults=faults), clusters=(cluster,), started_at_ns=STARTED_AT_NS)


def watched() -> Watched:
    table = Table()
    table.define("x", np.float64, 0.0)
    return Watched(table)


def test_the_columns_are_those_that_the_messages_make() -> None:
    metrics = DetectProcessor.of(Detect(), rebuild_seconds=120).samples.plan.metrics
    short, long = Feed(fleet(*FAULTS)), Feed(fleet(*FAULTS), messages=True)
    view, reader = ViewReader([short], metrics), Reader(metrics)
    here, there = watched(), watched()
    lost, hung = 0, 0
    for _ in range(25):
        given = []
        for feed, read, known in ((short, view, here), (long, reader, there)):
            batches = [decode(r) for r in feed.step() if r.topic == topics.SAMPLES]
            given.append(read.read([Taken(b) for b in batches if isinstance(b, v1.SampleBatch)], known))
        one, other = given
        assert [d.uid for d in one.devices] == [d.uid for d in other.devices]
        assert [(d.index, d.model) for d in one.devices] == [(d.index, d.model) for d in other.devices]
        assert np.array_equal(one.values, other.values, equal_nan=True)
        assert np.array_equal(one.at_ns, other.at_ns)
        assert np.array_equal(one.epoch, other.epoch)
        none = np.zeros(one.values.shape, np.bool_)
        assert np.array_equal(none if one.absent is None else one.absent, none if other.absent is None else other.absent)
        lost += len(one.devices) < 8
        hung += one.absent is not None
    assert lost
    assert hung


def test_a_day_by_columns_raises_what_it_raises_by_messages() -> None:
    ((one,), (other,)) = (run([fleet(*FAULTS)], 900, messages=messages) for messages in (False, True))
    assert one.raised == other.raised
    assert one.fired == other.fired
    assert {r.rule for r in one.raised if not r.shadow} >= {"driver_hang", "ecc_uncorrected", "thermal_throttle"}


def test_days_that_are_watched_together_are_as_they_are_alone() -> None:
    faults = {"a": FAULTS, "b": ("driver_hang@300s+100s:source",), "c": ()}
    alone = [run([fleet(*texts, cluster=name)], 700)[0] for name, texts in faults.items()]
    assert run([fleet(*texts, cluster=name) for name, texts in faults.items()], 700) == alone
    assert [bool(day.fired) for day in alone] == [True, True, False]


def test_a_fault_of_many_cards_is_one_incident() -> None:
    (day,) = run([fleet("power_brake@300s+200s:node=sim-node-1")], 600)
    assert len({f.entity for f in day.fired if f.rule == "power_brake"}) > 1
    assert len({f.incident for f in day.fired if f.rule == "power_brake"}) == 1


def test_while_the_source_hangs_nothing_is_said_and_the_nodes_are_silent() -> None:
    (day,) = run([fleet("driver_hang@300s+100s:source")], 500)
    assert {r.entity for r in day.raised if r.rule == "node_silent"} == {f"node/{CLUSTER}/sim-node-1", f"node/{CLUSTER}/sim-node-2"}


def test_owners_and_context_are_said_when_they_change() -> None:
    feed = Feed(fleet("memory_leak@60s+65s"))
    (card,) = feed.fleet.faults[0].cards
    said: dict[str, list[int]] = {"context": [], "usage": []}
    node = feed.fleet.layout.devices[card].node.name
    for step in range(STEP_SECONDS, 310, STEP_SECONDS):
        for record in feed.step():
            message = decode(record)
            if isinstance(message, v1.ContextEvent):
                said["context"].append(step)
            elif isinstance(message, v1.AttributedBatch) and message.node == node:
                said["usage"].append(step)
    assert said == {"context": [130], "usage": [60, 120, 130, 180, 240, 300]}


@pytest.mark.parametrize("messages", [False, True])
def test_only_a_feed_of_messages_fills_its_batches(messages: bool) -> None:
    feed = Feed(fleet(), messages)
    assert len(list(feed.inventory())) == 2 + 8
    batches = [decode(r) for r in feed.step() if r.topic == topics.SAMPLES]
    assert [len(b.devices) for b in batches if isinstance(b, v1.SampleBatch)] == ([4, 4] if messages else [0, 0])
