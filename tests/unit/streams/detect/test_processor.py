"""The detect role as the runners see it: records in, findings and dead letters out, and what a restart brings back."""

from collections.abc import Sequence

import pytest

from schemas import topics
from schemas.codec import HEADERS, decode, tombstone
from schemas.flow import DeadLetter, Emitted, Out, Partition, Processor, Record, Tick
from schemas.identity import device_key, node_key, partition_of
from schemas.status import CountsDrops
from schemas.telemetry import v1
from streams.processors.detect import DetectProcessor
from streams.settings import Detect
from tests.unit.streams.detect.given import ALL, GIB, MemoryReader, at, batch, record, said, sample

SAMPLES = topics.SAMPLES


def processor(reader: MemoryReader | None = None, owned: frozenset[Partition] = ALL) -> DetectProcessor:
    made = DetectProcessor.of(Detect(), rebuild_seconds=120)
    made.restore(reader or MemoryReader(), owned)
    return made


def findings(emitted: Sequence[Emitted]) -> list[v1.Finding]:
    found = []
    for out in emitted:
        assert isinstance(out, Out)
        message = decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, 0))
        assert isinstance(message, v1.Finding)
        assert out.key == f"{message.rule}+{message.entity}".encode()
        found.append(message)
    return found


def memory(seconds: float, used: int, node: str = "n1") -> Record:
    made = batch(seconds, v1.DeviceSample(uid="v:1", index=2, memory_used_bytes=used * GIB, memory_total_bytes=80 * GIB), node=node)
    return record(SAMPLES, made, seconds)


def test_it_is_a_processor_and_reads_what_the_table_of_topics_says() -> None:
    made: Processor = processor()
    assert (made.role, made.rewind_seconds, made.silent_rebuild) == ("detect", 120, True)
    reads = {t.name for t in topics.TOPICS if "detect" in t.readers}
    assert reads == {*made.inputs, topics.ALERT_STATE}


def test_memory_that_fills_up_makes_one_finding_with_limit_and_hold_time() -> None:
    found = findings(processor().process([memory(s, 70 + s) for s in range(10)]))
    assert said(found) == [(7, "memory_nearly_full", True)]
    assert found[0].summary == "GPU 2 on n1: 77.0 GiB of memory used, limit 76.0 GiB (unknown)"
    assert (found[0].hold_ns, found[0].clear_ns) == (3_000_000_000, 5_000_000_000)


@pytest.mark.parametrize("ahead", [-120, -60, 0, 3600])
def test_a_finding_has_the_brokers_time_however_wrong_the_nodes_clock_is(ahead: int) -> None:
    given = processor()
    found = []
    for s in range(10):
        made = batch(s + 1000 + ahead, v1.DeviceSample(uid="v:1", memory_used_bytes=(70 + s) * GIB, memory_total_bytes=80 * GIB))
        made.sent_at_ns, made.sequence = made.taken_at_ns + 1_000_000, s
        found += findings(given.process([record(SAMPLES, made, s + 1000)]))
    assert [f.observed_at_ns for f in found] == [at(1007)]
    assert given.counters["clocks_wrong"] == (1 if ahead else 0)


def test_a_kind_of_context_event_of_a_later_release_labels_like_any_other() -> None:
    given = processor()
    event = v1.ContextEvent(entity="device/v:1", cluster="c1", node="n1", kind=99, at_ns=at(0), text="new")  # type: ignore[arg-type]  # not known here
    (found,) = findings(given.process([record(topics.CONTEXT_EVENTS, event, 0), memory(1, 78)]))
    assert found.evidence["context"].startswith("unknown_99 of device/v:1")


def test_replayed_records_double_nothing() -> None:
    given = processor()
    records = [memory(s, 78) for s in range(3)]
    assert len(given.process(records)) == 1
    assert list(given.process(records)) == []
    assert given.counters["samples_duplicate_total"] == 3
    assert isinstance(given, CountsDrops)
    assert given.dropped == {"sample_batch_duplicate": 3}


def test_one_record_at_a_time_finds_the_same_as_all_at_once() -> None:
    records = [memory(s, u, node) for s, u in enumerate([70, 78, 79, 60, 78]) for node in ("n1", "n2")]
    given = processor()
    assert [o for r in records for o in given.process([r])] == list(processor().process(records))


def usage(seconds: float, *rows: tuple[str, float]) -> Record:
    made = v1.AttributedBatch(cluster="c1", node="n1", source="nvidia", taken_at_ns=at(seconds))
    for name, share in rows:
        made.rows.add(uid="v:1", share_ratio=share, workload=v1.Workload(namespace="prod", workload=name))
    return record(topics.USAGE, made, seconds)


@pytest.mark.parametrize(
    ("words", "owner"),
    [
        ([usage(1, ("train", 1))], "train"),
        ([usage(1, ("small", 0.2), ("large", 0.8))], "large"),
        ([usage(2, ("new", 1)), usage(1, ("old", 1))], "new"),
        ([usage(1, ("old", 1)), usage(2)], ""),
    ],
    ids=["known", "shared", "older_last", "gone"],
)
def test_the_owner_is_the_newest_that_usage_names(words: list[Record], owner: str) -> None:
    found = findings(processor().process([memory(3, 78), *words]))
    assert found[0].owner.workload == owner
    assert found[0].evidence.get("owner", "") == (f"prod/{owner}" if owner else "")


def test_what_was_done_to_a_device_or_its_node_is_shown() -> None:
    def done(entity: str, seconds: float, text: str) -> Record:
        kind = v1.ContextEventKind.CONTEXT_EVENT_KIND_DEPLOY
        made = v1.ContextEvent(entity=entity, cluster="c1", node="n1", kind=kind, at_ns=at(seconds), text=text, id=text)
        return record(topics.CONTEXT_EVENTS, made, seconds, key=entity.encode())

    events = [
        done("device/v:1", 1, "first"),
        done("node/c1/n1", 2, "second"),
        done("node/c1/n1", 2, "second"),
        done("node/c1/n2", 3, "other"),
    ]
    found = findings(processor().process([*events, memory(3, 78)]))
    told = found[0].evidence["context"].split("; ")
    assert [t.rsplit(" ", 1)[-1] for t in told] == ["first", "second"]


def lost(seconds: float, kind: str = "LOST") -> Record:
    made = v1.DeviceEvent(cluster="c1", node="n1", uid="v:1", source="nvidia", kind=f"DEVICE_EVENT_KIND_{kind}", at_ns=at(seconds))
    return record(topics.DEVICE_EVENTS, made, seconds)


def test_a_lost_device_is_back_with_its_first_value() -> None:
    given = processor()
    gone = v1.AbsenceReason.ABSENCE_REASON_LOST
    nothing = [record(SAMPLES, batch(s, sample("v:1", absent={"memory_used_bytes": gone})), s) for s in (2, 3)]
    found = findings(given.process([memory(0, 10), lost(1), *nothing])) + findings(given.process([memory(4, 10)]))
    assert said(found) == [(1, "device_lost", True), (4, "device_lost", False)]


def test_slow_values_repeated_by_a_full_sample_do_not_bring_a_hung_device_back() -> None:
    given = processor()
    error = v1.AbsenceReason.ABSENCE_REASON_ERROR
    silent = batch(2, sample("v:1", absent={"memory_used_bytes": error}, memory_total_bytes=80 * GIB, temperature_slowdown_celsius=89.0))
    found = findings(given.process([memory(0, 10), lost(1, "HANG"), record(SAMPLES, silent, 2)]))
    found += findings(given.process([memory(4, 10)]))
    assert said(found) == [(1, "driver_hang", True), (4, "driver_hang", False)]


def test_a_silent_node_is_seen_by_a_tick_and_a_replayed_batch_is_a_word_too() -> None:
    given = processor()
    given.process([memory(0, 10)])
    assert list(given.tick(Tick(at(15)))) == []
    assert said(findings(given.tick(Tick(at(16))))) == [(16, "node_silent", True)]
    late = memory(0, 10)._replace(timestamp_ns=at(20))
    assert said(findings(given.process([late]))) == [(20, "node_silent", False)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": b""}, "empty value"),
        ({"value": None}, "null value"),
        ({"value": b"\xff\xff"}, "malformed"),
        ({"headers": ()}, "no schema-version"),
        ({"headers": (("schema-version", b"9.0"),)}, "schema major 9"),
    ],
)
@pytest.mark.parametrize("topic", DetectProcessor.inputs)
def test_what_cannot_be_read_is_a_dead_letter_and_the_rest_goes_on(topic: str, change: dict[str, object], reason: str) -> None:
    bad = Record(topic, 0, 0, b"c1/n1", b"x", HEADERS, at(0))._replace(**change)  # type: ignore[arg-type]  # a table of changes
    if topics.topic(topic).compacted and change == {"value": None}:
        pytest.skip("there it is a deletion")
    letter, *rest = processor().process([bad, memory(1, 78)])
    assert isinstance(letter, DeadLetter)
    assert letter.record is bad
    assert reason in letter.reason
    assert len(rest) == 1


def known(*, simulated: bool = False) -> list[Record]:
    node = v1.InventoryRecord(observed_at_ns=at(-900), node=v1.NodeInfo(cluster="c1", node="n1", simulated=simulated))
    info = v1.DeviceInfo(uid="v:1", cluster="c1", node="n1", model="H200", index=5, simulated=simulated)
    device = v1.InventoryRecord(observed_at_ns=at(-900), device=info)
    return [
        record(topics.INVENTORY, node, -900, key=node_key("c1", "n1")),
        record(topics.INVENTORY, device, -900, key=device_key("c1", "n1", "v:1")),
    ]


def test_nodes_of_the_inventory_are_expected_and_devices_have_their_names() -> None:
    given = processor(MemoryReader(*known()))
    assert given.watched == (1, 1)
    assert list(given.tick(Tick(at(0)))) == []
    assert said(findings(given.tick(Tick(at(16))))) == [(16, "node_silent", True)]
    assert findings(given.process([lost(20)]))[0].summary.startswith("GPU 5 on n1")


def test_a_deleted_node_and_one_simulated_in_the_past_are_not_expected() -> None:
    deleted = [tombstone(topics.INVENTORY, key) for key in (node_key("c1", "n1"), device_key("c1", "n1", "v:1"))]
    gone = [Record(o.topic, partition_of(o.key, 4), 1, o.key, None, o.headers, at(-800)) for o in deleted]
    for reader in (MemoryReader(*known(), *gone), MemoryReader(*known(simulated=True))):
        given = processor(reader)
        given.tick(Tick(at(0)))
        assert list(given.tick(Tick(at(100)))) == []


def test_a_node_of_another_partition_is_neither_expected_nor_kept() -> None:
    home = partition_of(b"c1/n1", 4)
    others = frozenset(p for p in ALL if p.partition != home)
    given = processor(MemoryReader(*known()), others)
    assert given.watched == (0, 0)
    given.restore(MemoryReader(), ALL)
    given.process([memory(0, 78), usage(0, ("train", 1)), lost(0)])
    given.restore(MemoryReader(), others)
    assert given.watched == (0, 0)
    assert list(given.tick(Tick(at(100)))) == []
    given.restore(MemoryReader(), ALL)
    assert len(given.process([memory(0, 78)])) == 1


def test_what_is_still_owned_is_kept_over_a_rebalance() -> None:
    given = processor()
    given.process([memory(0, 78)])
    given.restore(MemoryReader(), ALL)
    assert list(given.process([memory(0, 78), memory(1, 78)])) == []
    assert said(findings(given.process([memory(2, 10)]))) == [(2, "memory_nearly_full", False)]


def standing(finding: v1.Finding) -> Record:
    alert = v1.Alert(fingerprint="f", episode="e", status="ALERT_STATUS_FIRING", at_ns=at(0))
    state = v1.AlertState(alert=alert, last_finding=finding)
    return record(topics.ALERT_STATE, state, 0, key=f"{finding.rule}{finding.entity}".encode(), partition=0)


def test_findings_that_stand_in_alert_state_outlive_a_restart() -> None:
    before = processor()
    found = findings([*before.process([memory(0, 78), lost(0)]), *before.tick(Tick(at(100)))])
    assert {f.rule for f in found} == {"memory_nearly_full", "device_lost", "node_silent"}

    after = processor(MemoryReader(*map(standing, found)))
    again = findings(after.tick(Tick(at(300))))
    assert {(f.rule, f.since_ns) for f in again if f.active} == {("device_lost", at(0)), ("node_silent", at(0))}
    # inside the hysteresis band: a fresh detector would say nothing and the alert would end as "signal lost"
    assert {(f.rule, f.active) for f in findings(after.process([memory(301, 75)]))} == {
        ("memory_nearly_full", True),
        ("device_lost", False),
        ("node_silent", False),
    }


def test_what_cannot_be_read_on_restore_is_counted_and_the_rest_goes_on() -> None:
    bad = Record(topics.INVENTORY, 0, 0, b"c1/n9", b"\xff", HEADERS, at(0))
    given = processor(MemoryReader(bad, *known()))
    assert given.watched == (1, 1)
    assert given.counters["restore_rejected_total"] == 1
