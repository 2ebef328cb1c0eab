"""The detect role holds back what a deploy or restart explains, whenever it hears of it, and says in which rack a finding is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from collectors.publisher import event_out
from schemas import topics
from schemas.codec import decode
from schemas.flow import Emitted, Out, Partition, Record, Tick
from schemas.identity import device_key, node_key, partition_of
from schemas.telemetry import v1
from streams.processors.detect import DetectProcessor
from streams.settings import Detect
from tests.unit.streams.detect.given import ALL, MemoryReader, at, batch, record, sample

RULES = """rules:
  - {name: odd_power, meaning: M., summary: S, when: {type: anomaly, metrics: [power_watts]}}
  - {name: full, meaning: M., summary: S, when: {type: above, metric: memory_used_bytes, limit: 80}}
"""
DEPLOY = v1.ContextEventKind.CONTEXT_EVENT_KIND_DEPLOY
JUMP, END, STEP = 6000, 7500, 10
"""Seconds: the power jumps at JUMP and stays; one sample each STEP."""

Make = Callable[..., DetectProcessor]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES, encoding="utf-8")

    def processor(*records: Record) -> DetectProcessor:
        made = DetectProcessor.of(Detect(rules=file), rebuild_seconds=120)
        made.restore(MemoryReader(*records), ALL)
        return made

    return processor


def findings(emitted: Sequence[Emitted]) -> list[v1.Finding]:
    found = []
    for out in emitted:
        assert isinstance(out, Out)
        message = decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, 0))
        assert isinstance(message, v1.Finding)
        found.append(message)
    return found


def power(since: int = 0, until: int = END, jump: int = JUMP) -> list[Record]:
    made = []
    for s in range(since, until, STEP):
        watts = (300 if s < jump else 650) + 5 * math.sin(s)
        made.append(record(topics.SAMPLES, batch(s, sample("v:1", power_watts=watts, memory_used_bytes=40 if s < jump else 90)), s))
    return made


def deploy(seconds: float) -> Record:
    event = v1.ContextEvent(
        entity="service/c1/ai/chat",
        cluster="c1",
        node="n1",
        kind=v1.ContextEventKind.CONTEXT_EVENT_KIND_DEPLOY,
        at_ns=at(seconds),
        text="v2",
        id="e1",
    )
    return record(topics.CONTEXT_EVENTS, event, seconds)


def jump(seconds: int, node: str) -> v1.SampleBatch:
    watts = (300 if seconds < JUMP else 650) + 5 * math.sin(seconds)
    return batch(seconds, sample(f"v:{node}", power_watts=watts, memory_used_bytes=40), node=node)


def usage(seconds: float, service: str = "") -> Record:
    made = v1.AttributedBatch(cluster="c1", node="n1", source="nvidia", taken_at_ns=at(seconds))
    if service:
        made.rows.add(uid="v:1", share_ratio=1, workload=v1.Workload(namespace="ai", service=service))
    return record(topics.USAGE, made, seconds)


def odd(found: Sequence[v1.Finding]) -> list[v1.Finding]:
    return [f for f in found if f.rule == "odd_power" and f.observed_at_ns >= at(JUMP)]


def test_without_context_a_jump_is_raised_at_once(make: Make) -> None:
    found = findings(make().process([usage(0, "chat"), *power(until=JUMP + 100)]))
    first = odd(found)[0]
    assert first.active
    assert first.observed_at_ns <= at(JUMP + 60)
    assert not first.explained_by


def test_a_deploy_holds_it_back_and_nothing_else(make: Make) -> None:
    found = findings(make().process([usage(0, "chat"), *power(until=JUMP), deploy(JUMP - 5), *power(JUMP, JUMP + 300)]))
    (held,) = odd(found)
    assert not held.active
    assert held.explained_by == "deploy of service/c1/ai/chat: v2"
    assert held.evidence["context_event"] == "e1"
    assert [f.active for f in found if f.rule == "full"][:1] == [True]


@pytest.mark.parametrize("service", ["search", ""])
def test_a_deploy_of_another_service_explains_nothing(make: Make, service: str) -> None:
    found = findings(make().process([usage(0, service), *power(until=JUMP), deploy(JUMP - 5), *power(JUMP, JUMP + 300)]))
    assert odd(found)[0].active


def test_during_a_restart_the_last_owner_is_asked_for(make: Make) -> None:
    words = [
        usage(0, "chat"),
        usage(JUMP - 20, "chat"),
        *power(until=JUMP - 10),
        usage(JUMP - 6),
        deploy(JUMP - 5),
        *power(JUMP, JUMP + 300),
    ]
    (held,) = odd(findings(make().process(words)))
    assert not held.active


def test_who_worked_on_it_long_ago_is_not(make: Make) -> None:
    gone = [usage(s) for s in range(500, 1500, 100)]
    found = findings(make().process([usage(0, "chat"), *gone, *power(until=JUMP), deploy(JUMP - 5), *power(JUMP, JUMP + 300)]))
    assert odd(found)[0].active


def test_each_of_two_processes_hears_what_was_done_on_its_own_nodes(tmp_path: Path) -> None:
    """Keyed by its entity an event of a service would go to one process, whatever nodes the service works on."""
    file = tmp_path / "rules.yaml"
    file.write_text(RULES, encoding="utf-8")
    heard = 0
    for mine in ({0, 1}, {2, 3}):
        given = DetectProcessor.of(Detect(rules=file), rebuild_seconds=120)
        given.restore(MemoryReader(), frozenset(Partition(topic, p) for topic in DetectProcessor.inputs for p in mine))
        for node in (f"n{n}" for n in range(6)):
            calm = [record(topics.SAMPLES, jump(s, node), s) for s in range(0, JUMP, STEP)]
            after = [record(topics.SAMPLES, jump(s, node), s) for s in range(JUMP, JUMP + 100, STEP)]
            done = v1.ContextEvent(entity="service/c1/ai/chat", cluster="c1", node=node, kind=DEPLOY, at_ns=at(JUMP - 5), id=node)
            made = event_out(done)
            known = v1.AttributedBatch(cluster="c1", node=node, source="nvidia", taken_at_ns=at(0))
            known.rows.add(uid=f"v:{node}", share_ratio=1, workload=v1.Workload(namespace="ai", service="chat"))
            event = Record(made.topic, partition_of(made.key, 4), 0, made.key, made.value, made.headers, at(JUMP - 5))
            told = [r for r in (record(topics.USAGE, known, 0), *calm, event, *after) if r.partition in mine]
            found = odd(findings(given.process(told)))
            assert [(f.active, f.evidence["context_event"]) for f in found[:1]] == ([(False, node)] if len(told) > 1 else [])
            heard += len(told) > 1
    assert heard == 6


def test_a_deploy_that_is_heard_of_late_clears_it(make: Make) -> None:
    given = make()
    raised = odd(findings(given.process([usage(0, "chat"), *power(until=JUMP + 100)])))
    assert raised[0].active
    (cleared,) = odd(findings(given.process([deploy(JUMP - 5), *power(JUMP + 100, JUMP + 160)])))
    assert not cleared.active
    assert cleared.explained_by


def test_after_a_restart_of_the_role_it_is_still_explained(make: Make) -> None:
    given = make(deploy(JUMP - 5))
    (held,) = odd(findings(given.process([usage(0, "chat"), *power(until=JUMP + 300)])))
    assert not held.active


def test_context_that_cannot_be_read_is_counted_and_passed_over(make: Make) -> None:
    bad = record(topics.CONTEXT_EVENTS, v1.ContextEvent(), 0)._replace(value=b"\xff\xff")
    assert make(bad).dropped["state_unreadable"] == 1


def listed(info: v1.NodeInfo | v1.DeviceInfo, seconds: float) -> Record:
    is_node = isinstance(info, v1.NodeInfo)
    key = node_key("c1", "n1") if isinstance(info, v1.NodeInfo) else device_key("c1", "n1", info.uid)
    said = v1.InventoryRecord(observed_at_ns=at(seconds), **{"node" if is_node else "device": info})  # type: ignore[arg-type]  # one of two
    return record(topics.INVENTORY, said, seconds, key=key)


def hot(seconds: float, uid: str = "v:1") -> Record:
    return record(topics.SAMPLES, batch(seconds, sample(uid, memory_used_bytes=90)), seconds)


def test_a_finding_says_its_rack_and_of_a_partition_the_board(make: Make) -> None:
    node = listed(v1.NodeInfo(cluster="c1", node="n1", labels={"rack": "r7"}), 0)
    part = listed(v1.DeviceInfo(cluster="c1", node="n1", uid="v:1", parent_uid="v:0"), 0)
    (found,) = findings(make(node, part).process([hot(1)]))
    assert (found.evidence["rack"], found.evidence["parent"]) == ("r7", "v:0")
    moved = make(node, part)
    moved.process(
        [
            listed(v1.NodeInfo(cluster="c1", node="n1"), 2)._replace(offset=1),
            listed(v1.DeviceInfo(cluster="c1", node="n1", uid="v:1"), 2)._replace(offset=1),
        ]
    )
    (found,) = findings(moved.process([hot(3)]))
    assert {"rack", "parent"} & set(found.evidence) == set()


def test_a_silent_node_says_its_rack_too(make: Make) -> None:
    given = DetectProcessor.of(Detect(), rebuild_seconds=120)
    given.restore(MemoryReader(listed(v1.NodeInfo(cluster="c1", node="n1", labels={"rack": "r7"}), 0)), ALL)
    given.tick(Tick(at(1)))
    (found,) = findings(given.tick(Tick(at(100))))
    assert (found.rule, found.evidence["rack"]) == ("node_silent", "r7")
