"""State does not grow with names that come and go: replaced cards, renamed services, entities of deploys."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from schemas import topics
from schemas.flow import Record, Tick
from schemas.telemetry import v1
from streams.operators.detect import labels, services
from streams.operators.detect.labels import Labels
from streams.processors.detect import FORGET_NS, DetectProcessor
from streams.settings import Detect
from tests.unit.streams.detect.given import ALL, GIB, SECOND, TIMES, MemoryReader, at, batch, record, rule

DAY = FORGET_NS / SECOND


def sampled(seconds: float, *uids: str) -> Record:
    return record(topics.SAMPLES, batch(seconds, *(v1.DeviceSample(uid=uid, memory_used_bytes=GIB) for uid in uids)), seconds)


def processor(records: Sequence[Record] = ()) -> DetectProcessor:
    made = DetectProcessor.of(Detect(), rebuild_seconds=120)
    made.restore(MemoryReader(), ALL)
    made.process(records)
    return made


def test_a_replaced_card_is_forgotten_after_a_day_and_its_row_is_used_again() -> None:
    given = processor([sampled(0, "v:old", "v:other")])
    given.tick(Tick(at(0)))
    given.process([sampled(DAY - 1, "v:new", "v:other")])
    given.tick(Tick(at(DAY)))
    assert given.watched == (1, 3)
    given.tick(Tick(at(DAY + 3601)))
    assert given.watched == (1, 2)
    assert given.counters["forgotten_devices_total"] == 1


def test_a_service_is_forgotten_when_its_windows_end() -> None:
    given = services.start([rule({"type": "above", "metric": "requests_waiting", "limit": 5}, entity="service")], TIMES)
    for name, second in (("old", 0), ("new", 100)):
        window = v1.InferenceWindow(cluster="c", node="n", started_at_ns=at(second - 10), ended_at_ns=at(second), requests_waiting=9)
        window.workload.service = name
        assert len(services.step(given, [window])[1]) == 1
    assert services.forget_older(given, at(50)) == 1
    assert [entity for _, entity in given.services] == ["service/c//new"]
    assert len(given.table) == 1


def test_context_is_kept_of_entities_heard_of_lately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "MOST_ENTITIES", 2)
    given = Labels(4)
    for entity in ("device/a", "device/b", "device/a", "device/c"):
        given.happened(v1.ContextEvent(entity=entity, cluster="c", kind="CONTEXT_EVENT_KIND_DEPLOY", at_ns=1))
    assert [(entity, len(events)) for (_, entity), events in given.context.items()] == [("device/a", 2), ("device/c", 1)]
    assert given.context.dropped == 1


def test_the_owner_that_nobody_has_named_for_a_day_is_not_known() -> None:
    given = Labels(4)
    for node, second in (("n1", 0), ("n2", 100)):
        batch_ = v1.AttributedBatch(cluster="c", node=node, source="s", taken_at_ns=at(second))
        batch_.rows.add(uid="v:1", share_ratio=1, workload=v1.Workload(workload="train"))
        given.used(batch_)
    given.forget_older(at(50))
    assert given.owner("c", "n1", "v:1") is None
    assert given.owner("c", "n2", "v:1") is not None
    given.forget("c", "n1")
