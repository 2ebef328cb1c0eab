"""One device, one speaker: DCGM's figures go on only where NVML's do not."""

from __future__ import annotations

from collectors.addresses import Addresses
from collectors.contract import NodeReading, Reading
from collectors.coverage import KEEP_NS, WAIT_NS, Coverage, priority
from collectors.events import device_event
from collectors.outlet import Outlet, Shared
from collectors.publisher import Publisher
from collectors.stats import Tally
from schemas import topics
from schemas.flow import Out
from schemas.identity import NodeRef
from schemas.telemetry import v1

OWN, FAR = NodeRef("c", "own"), NodeRef("c", "far")
SECOND = 10**9


def reading(*uids: str, node: NodeRef | None = None, events: tuple[v1.DeviceEvent, ...] = (), parent: str = "") -> Reading:
    samples = tuple(v1.DeviceSample(uid=uid, info=v1.DeviceInfo(parent_uid=parent)) for uid in uids)
    return Reading((NodeReading(1, samples, node=node),), events)


def uids(found: Reading) -> list[str]:
    return [sample.uid for part in found.samples for sample in part.samples]


def both() -> Coverage:
    return Coverage({"nvidia": 100, "dcgm": 50})


def test_a_covered_device_is_dropped_and_counted_others_go_on() -> None:
    coverage = both()
    coverage.sift("nvidia", reading("a", "b"), OWN, 0)
    found = coverage.sift("dcgm", reading("a", "c", node=OWN), OWN, SECOND)
    assert uids(found.reading) == ["c"]
    assert found.dropped == 1


def test_the_better_source_is_never_sifted() -> None:
    coverage = both()
    coverage.sift("dcgm", reading("a"), OWN, 0)
    assert uids(coverage.sift("nvidia", reading("a"), OWN, 1).reading) == ["a"]


def test_the_same_uid_on_another_node_is_another_device() -> None:
    coverage = both()
    coverage.sift("nvidia", reading("a"), OWN, 0)
    assert uids(coverage.sift("dcgm", reading("a", node=FAR), OWN, 1).reading) == ["a"]


def test_instances_are_covered_with_their_gpu_however_each_source_names_them() -> None:
    coverage = both()
    coverage.sift("nvidia", reading("nvidia:GPU-1", "nvidia:MIG-9"), OWN, 0)
    assert uids(coverage.sift("dcgm", reading("nvidia:GPU-1/gi7", parent="nvidia:GPU-1"), OWN, 1).reading) == []


def test_a_better_source_that_fell_silent_covers_nothing_and_all_is_sent_again() -> None:
    coverage = both()
    coverage.sift("nvidia", reading("a"), OWN, 0)
    assert coverage.sift("dcgm", reading("a"), OWN, KEEP_NS).dropped == 1
    found = coverage.sift("dcgm", reading("a"), OWN, KEEP_NS + 1)
    assert (uids(found.reading), found.resumed) == (["a"], True)
    assert not coverage.sift("dcgm", reading("a"), OWN, KEEP_NS + 2).resumed


def test_who_starts_first_waits_for_the_better_source_but_not_for_ever() -> None:
    coverage = both()
    assert uids(coverage.sift("dcgm", reading("a"), OWN, 0).reading) == []
    assert uids(coverage.sift("dcgm", reading("b", node=FAR), OWN, 1).reading) == ["b"], "of other nodes nobody else speaks"
    assert uids(coverage.sift("dcgm", reading("a"), OWN, WAIT_NS).reading) == ["a"]


def test_a_better_source_without_samples_is_not_waited_for() -> None:
    coverage = Coverage({"kernel": 100, "dcgm": 50})
    coverage.sift("kernel", Reading(), OWN, 0)
    assert uids(coverage.sift("dcgm", reading("a"), OWN, 1).reading) == ["a"]


def test_events_of_covered_devices_are_dropped_those_of_the_source_are_not() -> None:
    coverage = both()
    coverage.sift("nvidia", reading("a"), OWN, 0)
    events = tuple(device_event(OWN, "dcgm", "xid", 1, "t", uid=uid) for uid in ("a", "a/gi1", "b", ""))
    found = coverage.sift("dcgm", reading("a", events=events), OWN, 1)
    assert [event.uid for event in found.reading.events if isinstance(event, v1.DeviceEvent)] == ["b", ""]
    assert found.dropped == 3


def test_equal_priorities_change_nothing() -> None:
    coverage = Coverage({"a": 100, "b": 100})
    coverage.sift("a", reading("x"), OWN, 0)
    assert uids(coverage.sift("b", reading("x"), OWN, 1).reading) == ["x"]
    assert uids(Coverage().sift("b", reading("x"), OWN, 1).reading) == ["x"]


def test_the_settings_may_turn_it_round() -> None:
    assert (priority("dcgm", None), priority("nvidia", None), priority("dcgm", 200)) == (50, 100, 200)


def test_in_the_agent_no_sample_goes_out_twice_and_no_covered_card_is_called_lost() -> None:
    outs: list[Out] = []
    shared = Shared(OWN, outs.extend, lambda: SECOND, Addresses(OWN), coverage=both())
    outlets = {
        name: Outlet(Tally(name), Publisher(name, OWN, agent_epoch=1, interval_ns=SECOND, boot_id="boot"), shared)
        for name in ("nvidia", "dcgm")
    }
    tally = outlets["dcgm"]._tally
    for name in ("dcgm", "nvidia", "dcgm", "nvidia", "dcgm"):
        outlets[name].read(reading("nvidia:GPU-1"))
    batches = [v1.SampleBatch.FromString(out.value or b"") for out in outs if out.topic == topics.SAMPLES]
    assert [batch.source for batch in batches] == ["nvidia", "nvidia"]
    assert [out for out in outs if out.topic == topics.DEVICE_EVENTS] == []
    assert tally.dropped == {"covered": 3}
