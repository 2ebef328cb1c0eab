"""Devices of a model across nodes: what a node tells, and who is found where the node itself does not show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from schemas import topics
from schemas.codec import decode
from schemas.flow import Out, Partition, Record, Tick
from schemas.telemetry import v1
from streams.operators.detect import fleetwide, samples
from streams.operators.detect.columns import Taken
from streams.operators.detect.fleetwide import Fleetwide
from streams.operators.detect.peers import Peers
from streams.operators.detect.peerstats import TOLD
from streams.processors.detect import DetectProcessor
from streams.rules import load_rules
from streams.settings import Detect
from tests.unit.streams.detect.given import ALL, DETECTORS, TIMES, MemoryReader, at, batch, record, rule, said, sample

SLOW = rule({"type": "peer", "metrics": ["sm_clock_hertz", "power_watts"], "side": "below", "among": "model"}, "slow")
NODES = ("n1", "n2", "n3", "n4")
LIKE = {"sm_clock_hertz": 1.9e9, "power_watts": 500.0, "utilization_ratio": 0.9, "sm_active_ratio": 0.7, "power_limit_watts": 700.0}

Card = Callable[[str, int], dict[str, float]]


def told(seconds: float, node: str, card: Card, cards: int = 4) -> v1.PeerStats:
    made = v1.PeerStats(cluster="c1", node=node, model="H100", taken_at_ns=at(seconds), interval_ns=10**10, metric=TOLD)
    for i in range(cards):
        values = LIKE | card(node, i)
        made.devices.add(uid=f"{node}:{i}", index=i, mean=[values.get(name, float("nan")) for name in TOLD])
    return made


def start() -> Fleetwide:
    return fleetwide.start([SLOW], Peers(), TIMES)


def run(
    given: Fleetwide, card: Card, *, cards: int = 4, nodes: tuple[str, ...] = NODES, first: int = 0, last: int = 300
) -> list[v1.Finding]:
    words = [told(s, node, card, cards) for s in range(first, last, 10) for node in nodes]
    return fleetwide.step(given, words)[1]


def test_a_node_all_of_whose_cards_are_slow_is_found() -> None:
    found = run(start(), lambda node, _: {"sm_clock_hertz": 1.4e9} if node == "n2" else {})
    assert {f.entity for f in found} == {f"device/n2:{i}" for i in range(4)}
    assert (found[0].node, found[0].metric, found[0].detector) == ("n2", "sm_clock_hertz", "peers")
    assert found[0].value < found[0].expected_low < 1.9e9
    assert 60 <= (found[0].observed_at_ns - at(0)) / 1e9 <= 240, "for minutes"


def test_a_card_whose_node_shows_it_is_left_to_its_node() -> None:
    assert run(start(), lambda node, i: {"sm_clock_hertz": 1.4e9} if (node, i) == ("n2", 1) else {}) == []


def test_a_card_with_too_few_beside_it_is_found() -> None:
    found = run(start(), lambda node, i: {"sm_clock_hertz": 1.4e9} if (node, i) == ("n2", 1) else {}, cards=3)
    assert {f.entity for f in found} == {"device/n2:1"}


def test_two_nodes_that_differ_do_not_tell_which_is_slow() -> None:
    assert run(start(), lambda node, _: {"sm_clock_hertz": 1.4e9} if node == "n2" else {}, nodes=("n1", "n2"), cards=8) == []


def test_half_a_fleet_that_differs_is_two_kinds_of_work() -> None:
    assert run(start(), lambda node, _: {"sm_clock_hertz": 1.4e9} if node in ("n1", "n2") else {}) == []


@pytest.mark.parametrize("other", [{"utilization_ratio": 0.05}, {"power_limit_watts": 350.0}], ids=["idle", "limited"])
def test_what_is_not_like_is_not_compared(other: dict[str, float]) -> None:
    assert run(start(), lambda node, _: {"sm_clock_hertz": 1e9, "power_watts": 100.0, **other} if node == "n2" else {}) == []


def test_power_is_compared_at_like_activity_only() -> None:
    weak = {"power_watts": 300.0}
    assert {f.node for f in run(start(), lambda node, _: weak if node == "n2" else {})} == {"n2"}
    assert run(start(), lambda node, _: {**weak, "sm_active_ratio": 0.4} if node == "n2" else {}) == []


def test_it_clears_when_it_is_like_the_others_and_expires_when_nobody_tells() -> None:
    def slow(node: str, _: int) -> dict[str, float]:
        return {"sm_clock_hertz": 1.4e9} if node == "n2" else {}

    given = start()
    run(given, slow)
    found = run(given, lambda *_: {}, first=300, last=600)
    assert [f.active for f in found if f.entity == "device/n2:0"][-1] is False
    assert given.levels.active == {}
    run(given, slow, first=600, last=1200)
    assert given.levels.active
    assert all(f.active for f in fleetwide.step(given, [Tick(at(1205))])[1])
    assert fleetwide.step(given, [Tick(at(1300))])[1] == []
    assert given.levels.active == {}


def test_words_that_come_twice_or_late_change_nothing() -> None:
    def slow(node: str, _: int) -> dict[str, float]:
        return {"sm_clock_hertz": 1.4e9} if node == "n2" else {}

    words = [told(s, node, slow) for s in range(0, 300, 10) for node in NODES]
    messy = [w for n, word in enumerate(words) for w in (word, word, words[max(0, n - 8)])]
    assert fleetwide.step(start(), messy)[1] == fleetwide.step(start(), words)[1]


def test_who_is_not_told_of_any_more_is_forgotten() -> None:
    given = start()
    run(given, lambda *_: {})
    assert len(given.table) == 16
    fleetwide.step(given, [Tick(at(5000))])
    assert (len(given.table), given.told, given.rows) == (0, {}, {})


def test_a_step_is_its_parts() -> None:
    rng = np.random.default_rng(0)
    words = [
        told(s, node, lambda node, i: {"sm_clock_hertz": 1.9e9 * float(rng.uniform(0.6, 1.0))}) for s in range(0, 400, 10) for node in NODES
    ]
    one, two = start(), start()
    whole = fleetwide.step(one, words)[1]
    parts = [f for word in words for f in fleetwide.step(two, [word])[1]]
    assert whole == parts


def fleet(seconds: float, node: str, clock: float = 1.9e9) -> v1.SampleBatch:
    info = v1.DeviceInfo(model="H100")
    values: dict[str, Any] = {"utilization_ratio": 0.9, "sm_clock_hertz": clock, "throttle_reasons": 0, "power_limit_watts": 700.0}
    return batch(seconds, *[sample(f"{node}:{i}", info=info, index=i, **values) for i in range(4)], node=node)


def test_a_node_tells_means_of_ten_seconds_and_no_partitions() -> None:
    given = samples.start(load_rules(), DETECTORS, TIMES)
    part = sample("n1:mig", info=v1.DeviceInfo(model="H100", parent_uid="n1:0"), utilization_ratio=0.5)
    batches = [fleet(s, "n1", 1.8e9 if s % 2 else 1.9e9) for s in range(11)]
    for made in batches:
        made.devices.append(part)
    samples.step(given, [Taken(b) for b in batches])
    first, second = given.stats
    assert (first.node, first.model, [d.uid for d in first.devices]) == ("n1", "H100", [f"n1:{i}" for i in range(4)])
    assert second.taken_at_ns == at(10)
    assert second.devices[0].samples == 10
    assert second.devices[0].mean[TOLD.index("sm_clock_hertz")] == pytest.approx(1.85e9)
    assert np.isnan(second.devices[0].mean[TOLD.index("power_watts")])


def test_what_one_process_tells_another_compares() -> None:
    """Through the bus's records: the words go out keyed by cluster and model, and come back to whoever owns the one partition."""
    here = DetectProcessor.of(Detect(), rebuild_seconds=0)
    there = DetectProcessor.of(Detect(), rebuild_seconds=0)
    here.restore(MemoryReader(), ALL)
    there.restore(MemoryReader(), frozenset({Partition(topics.PEER_STATS, 0)}))
    found: list[v1.Finding] = []
    for s in range(0, 400, 10):
        outs = here.process([record(topics.SAMPLES, fleet(s, node, 1.4e9 if node == "n2" else 1.9e9), s) for node in NODES])
        words = [o for o in outs if isinstance(o, Out) and o.topic == topics.PEER_STATS]
        assert {o.key for o in words} == {b"c1/H100"}
        for out in there.process([Record(o.topic, 0, s, o.key, o.value, o.headers, at(s)) for o in words]):
            assert isinstance(out, Out)
            made = decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, 0))
            assert isinstance(made, v1.Finding)
            found.append(made)
    assert {(f.rule, f.node) for f in found} == {("slow_card_of_model", "n2")}
    assert said(found[:1])[0][2] is True
