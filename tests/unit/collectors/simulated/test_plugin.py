from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import pytest

from collectors.contract import Plugin, Reading, Ready
from schemas.catalogue import BY_NAME, BY_NUMBER, CATALOGUE, FAST, SLOW
from schemas.codec import encode
from schemas.telemetry import v1
from schemas.topics import TOPICS
from tests.unit.collectors.simulated.fleets import ALL, DEADLINE, START_NS, Clock, at, make_plugin
from tests.unit.collectors.simulated.fleets import FAST as FAST_DUE

if TYPE_CHECKING:
    from collectors.simulated.plugin import SimulatedPlugin

Event = TypeVar("Event")


def of(kind: type[Event], readings: list[Reading]) -> list[Event]:
    return [event for reading in readings for event in reading.events if isinstance(event, kind)]


def read_until(plugin: SimulatedPlugin, clock: Clock, seconds: float, every: float = 1.0) -> list[Reading]:
    readings = []
    while clock.seconds <= seconds:
        readings.append(plugin.read(FAST_DUE, DEADLINE))
        clock.seconds += every
    return readings


def test_probe_names_every_device() -> None:
    plugin, _ = make_plugin()
    contract: Plugin = plugin
    ready = contract.probe()
    assert isinstance(ready, Ready)
    assert len(set(ready.devices)) == 16
    assert all(uid.startswith("simulated:") for uid in ready.devices)


def test_a_read_gives_every_node_and_device() -> None:
    plugin, _ = make_plugin(clock=Clock(5))
    reading = plugin.read(ALL, DEADLINE)
    assert [(n.node, n.taken_at_ns, n.simulated) for n in reading.samples] == [
        (("local", "sim-node-1"), at(5), True),
        (("local", "sim-node-2"), at(5), True),
    ]
    assert [s.index for s in reading.samples[0].samples] == list(range(8))
    sample = reading.samples[0].samples[0]
    said = {f.name for f, _ in sample.ListFields() if f.number in BY_NUMBER}
    assert said == set(plugin.fleet.view().columns)
    assert [BY_NUMBER[n].name for n in sample.absences[0].field_number] == [m.name for m in CATALOGUE if m.name not in said]
    assert len(sample.absences) == 1
    assert sample.info.serial
    assert sample.info.bdf == "0000:1b:00.0"
    assert {reason for _, reason in reading.rejects} == {"not_supported"}


def test_slow_fields_only_when_due() -> None:
    plugin, _ = make_plugin()
    sample = plugin.read(FAST_DUE, DEADLINE).samples[0].samples[0]
    names = {f.name for f, _ in sample.ListFields()}
    absent = {BY_NUMBER[n].name for a in sample.absences for n in a.field_number}
    assert {m.name for m in FAST} == absent | {name for name in names if name in BY_NAME}
    assert not {m.name for m in SLOW} & names


def test_a_batch_of_eight_is_small() -> None:
    plugin, clock = make_plugin()
    sizes = []
    for due in (ALL, FAST_DUE):
        node = plugin.read(due, DEADLINE).samples[0]
        devices = []
        for sample in node.samples:
            if due is FAST_DUE:
                sample.ClearField("info")
            devices.append(sample)
        batch = v1.SampleBatch(cluster="local", node="sim-node-1", source="simulated", taken_at_ns=clock(), devices=devices)
        sizes.append(len(batch.SerializeToString()))
    assert sizes[0] < 4096
    assert sizes[1] < 2048


def test_a_restarted_plugin_goes_on_where_the_scenario_is() -> None:
    faults = ("memory_leak@20s+60s", "thermal@30s+60s", "device_lost@50s+20s")
    steady, clock = make_plugin(*faults)
    told = read_until(steady, clock, 89)
    clock.seconds = 90
    restarted, _ = make_plugin(*faults, clock=Clock(90))
    one, other = steady.read(ALL, DEADLINE), restarted.read(ALL, DEADLINE)
    assert one.samples == other.samples
    # What it tells again it tells with the ids that were told before.
    assert {e.id for e in of(v1.DeviceEvent, [other])} <= {e.id for e in of(v1.DeviceEvent, told)}
    assert {e.id for e in of(v1.ContextEvent, [other])} <= {e.id for e in of(v1.ContextEvent, told)}
    assert {e.id for e in of(v1.DeviceEvent, [other])} != set()
    before, again = ({c.SerializeToString() for c in of(v1.AllocationChange, r)} for r in (told, [other]))
    assert again <= before
    assert [len(s.open) for s in of(v1.AllocationSnapshot, [other])] == [len(s.open) for s in of(v1.AllocationSnapshot, told)[-2:]]


def test_reads_at_any_rhythm_tell_each_event_once() -> None:
    faults = ("memory_leak@20s+60s", "ecc_burst@15s+30s", "device_lost@50s+20s", "driver_hang@5s+20s")
    told = []
    for every in (0.3, 1.0, 7.7):
        plugin, clock = make_plugin(*faults)
        readings = read_until(plugin, clock, 123, every)
        found = [
            e.SerializeToString(deterministic=True)
            for kind in (v1.DeviceEvent, v1.ContextEvent, v1.AllocationChange, v1.InferenceWindow)
            for e in of(kind, readings)
            if getattr(e, "ended_at_ns", 0) <= at(110) and getattr(e, "at_ns", 0) <= at(110)
        ]
        assert len(set(found)) == len(found)
        told.append(set(found))
    assert told[0] == told[1] == told[2]


def test_a_leak_ends_with_a_restart_and_a_new_interval() -> None:
    plugin, clock = make_plugin("memory_leak@20s+60s")
    card = plugin.fleet.layout.devices[plugin.fleet.faults[0].cards[0]].uid
    readings = read_until(plugin, clock, 95)
    (restart,) = of(v1.ContextEvent, readings)
    assert (restart.kind, restart.at_ns) == (v1.ContextEventKind.CONTEXT_EVENT_KIND_RESTART, at(80))
    assert restart.entity.startswith("service/local/")
    changes = [c for c in of(v1.AllocationChange, readings) if c.allocation.device_uid == card]
    kinds = v1.AllocationChangeKind
    assert [(c.kind, c.at_ns) for c in changes[1:]] == [
        (kinds.ALLOCATION_CHANGE_KIND_CLOSED, at(80)),
        (kinds.ALLOCATION_CHANGE_KIND_OPENED, at(81)),
    ]
    assert changes[0].allocation.id == changes[1].allocation.id != changes[2].allocation.id
    last = [s for s in of(v1.AllocationSnapshot, readings) if card in {a.device_uid for a in s.open}][-1]
    assert [a.ended_at_ns for a in last.ended if a.device_uid == card] == [at(80)]


def test_snapshots_come_on_change_and_every_ten_seconds() -> None:
    plugin, clock = make_plugin("memory_leak@10s+17s:card=0")
    readings = read_until(plugin, clock, 45)
    first, second = ([s for s in of(v1.AllocationSnapshot, readings) if s.node == n] for n in ("sim-node-1", "sim-node-2"))
    assert [s.taken_at_ns - START_NS for s in second] == [k * 10**10 for k in range(5)]
    assert [(s.taken_at_ns - START_NS) // 10**9 for s in first] == [0, 10, 20, 27, 28, 38]


def test_windows_follow_each_other_and_count_what_they_say() -> None:
    plugin, clock = make_plugin()
    windows = of(v1.InferenceWindow, read_until(plugin, clock, 200))
    pod = windows[0].workload.pod
    mine = [w for w in windows if w.workload.pod == pod and w.device_uid == windows[0].device_uid]
    assert len(mine) == 20
    assert all(a.ended_at_ns == b.started_at_ns for a, b in pairwise(mine))
    for window in mine:
        assert sum(window.time_to_first_token_seconds.count) == window.requests > 0
        assert sum(window.inter_token_latency_seconds.count) == window.generated_tokens - window.requests
        assert len(window.time_to_first_token_seconds.count) == len(window.time_to_first_token_seconds.bound) + 1


def test_a_braked_card_makes_requests_wait() -> None:
    plugin, clock = make_plugin("power_brake@20s+300s:card=0")
    windows = [w for w in of(v1.InferenceWindow, read_until(plugin, clock, 200)) if plugin.fleet.layout.devices[0].uid in w.device_uid]
    token = [w.inter_token_latency_seconds.sum / max(1, sum(w.inter_token_latency_seconds.count)) for w in windows]
    assert token[-1] > 1.3 * token[0]


def test_a_lost_card_hides_no_other_and_comes_back() -> None:
    plugin, clock = make_plugin("device_lost@10s+10s:card=3")
    uid = plugin.fleet.layout.devices[3].uid
    readings = read_until(plugin, clock, 25)
    seen = [uid in {s.uid for s in r.samples[0].samples} for r in readings]
    assert seen == [True] * 10 + [False] * 10 + [True] * 6
    assert {len(r.samples[0].samples) for r in readings} == {7, 8}
    (event,) = of(v1.DeviceEvent, readings)
    assert (event.code, event.uid, event.at_ns, event.severity) == (79, uid, at(10), v1.Severity.SEVERITY_CRITICAL)


def test_a_hanging_driver_gives_absences_and_events() -> None:
    plugin, clock = make_plugin("driver_hang@10s+10s:node=sim-node-1")
    clock.seconds = 12
    reading = plugin.read(ALL, DEADLINE)
    hung, fine = reading.samples
    error = v1.AbsenceReason.ABSENCE_REASON_ERROR
    assert {a.reason for s in hung.samples for a in s.absences} == {error}
    assert {len(a.field_number) for s in hung.samples for a in s.absences} == {len(CATALOGUE)}
    not_supported = v1.AbsenceReason.ABSENCE_REASON_NOT_SUPPORTED
    assert {a.reason for s in fine.samples for a in s.absences} == {not_supported}
    assert reading.rejects[("power_watts", "error")] == 8
    assert len([e for e in of(v1.DeviceEvent, [reading]) if e.kind == v1.DeviceEventKind.DEVICE_EVENT_KIND_HANG]) == 8
    clock.seconds = 20
    after = plugin.read(ALL, DEADLINE)
    assert {e.kind for e in of(v1.DeviceEvent, [after])} == {v1.DeviceEventKind.DEVICE_EVENT_KIND_RECOVERED}
    assert {reason for _, reason in after.rejects} == {"not_supported"}


def test_a_hanging_source_blocks_the_read_until_the_fault_ends() -> None:
    plugin, clock = make_plugin("driver_hang@10s+25s:source")
    clock.seconds = 12
    reading = plugin.read(FAST_DUE, 0.0)
    assert clock.slept == 23
    assert reading.samples[0].taken_at_ns == at(35)


def test_a_start_far_into_the_scenario_keeps_to_the_deadline_and_gets_there() -> None:
    plugin, _ = make_plugin(clock=Clock(5 * 3600))
    assert plugin.read(FAST_DUE, 0.0) == Reading()
    assert plugin.read(FAST_DUE, DEADLINE).samples
    assert plugin.fleet.state.step == 5 * 3600


def test_inventory_comes_first_and_every_five_minutes() -> None:
    plugin, clock = make_plugin(nodes=3)
    records = of(v1.InventoryRecord, read_until(plugin, clock, 320, 10))
    assert len(records) == 6
    assert dict(records[2].node.labels) == {"rack": "r2", "pdu": "pdu2", "pool": "inference", "site": "simulated"}
    assert records[2].node.agent_version == "0.1.0"


def test_every_event_encodes_for_its_topic() -> None:
    plugin, clock = make_plugin("ecc_burst@1s+10s", "memory_leak@2s+5s")
    topic_of = {t.message: t.name for t in TOPICS if t.message is not None}
    for reading in read_until(plugin, clock, 20):
        for event in reading.events:
            assert encode(topic_of[type(event)], b"key", event).value
            if not isinstance(event, v1.InventoryRecord):
                assert event.simulated


def test_a_scenario_without_a_start_begins_when_the_plugin_is_made() -> None:
    plugin, clock = make_plugin(clock=Clock(1234), started_at_ns=0)
    assert plugin.fleet.started_at_ns == clock()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"nodse": 3}, "collectors.plugins.simulated.settings.nodse: Extra inputs"),
        ({"nodes": 0}, "collectors.plugins.simulated.settings.nodes: "),
        ({"faults": ["memry_leak@1s+1s"]}, "did you mean memory_leak"),
        ({"faults": ["thermal@1s+1s:card=77"]}, "no card '77'"),
        ({"clusters": ["a", "a"]}, "a name occurs twice"),
        ({"chip": {"slowdown_celsius": 20}}, "must hold"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make_plugin(**settings)  # type: ignore[arg-type]  # wrong on purpose
