"""What the outside is shown: fresh readings of listed devices, never a stale or a vanished one."""

from __future__ import annotations

import pytest

from collectors.contract import NodeReading, Reading
from collectors.events import device_event
from schemas.builder import SampleBuilder
from schemas.device_state import EventKey
from schemas.identity import NodeRef
from schemas.telemetry import v1
from xpulse.northbound.latest import Latest

NODE = NodeRef("c", "n")
S = 10**9


def latest(interval: int = 1, slow: int = 60) -> Latest:
    return Latest(NODE, interval_ns=interval * S, slow_interval_ns=slow * S, labels={"rack": "r1"})


def reading(at: int, *samples: v1.DeviceSample, epoch: int = 1) -> Reading:
    return Reading((NodeReading(at * S, samples, boot_id="b", driver_epoch=epoch, driver_version="580.1"),))


def sample(uid: str, *, slow: bool = True, power: float = 100.0) -> v1.DeviceSample:
    builder = SampleBuilder(uid, int(uid[-1])).set("power_watts", power).absent("fan_ratio", "not_supported")
    if slow:
        builder.set("memory_total_bytes", 80).info(v1.DeviceInfo(model="H100")).link(v1.InterconnectLink(index=3, active=True))
    return builder.build()


def test_values_absences_identity_and_links_are_held() -> None:
    kept = latest()
    kept.observe("nvidia", reading(100, sample("nvidia:0")))
    kept.observe("nvidia", reading(101, sample("nvidia:0", slow=False, power=120.0)))
    (device,) = kept.state(102 * S).devices
    assert device.values == {"power_watts": 120.0, "memory_total_bytes": 80}
    assert device.absences == {"fan_ratio": "not_supported"}
    assert (device.info.model, device.info.driver_version, device.links[0].index) == ("H100", "580.1", 3)
    assert (device.taken_at_ns, device.since_ns, device.source) == (101 * S, 100 * S, "nvidia")


def test_a_device_that_is_no_longer_listed_vanishes_at_once() -> None:
    kept = latest()
    kept.observe("nvidia", reading(100, sample("nvidia:0"), sample("nvidia:1")))
    kept.observe("nvidia", reading(101, sample("nvidia:1", slow=False)))
    assert [d.uid for d in kept.state(101 * S).devices] == ["nvidia:1"]


def test_a_silent_source_vanishes_after_its_max_age() -> None:
    kept = latest()
    kept.observe("nvidia", reading(100, sample("nvidia:0")))
    assert kept.state(115 * S).devices[0].values["power_watts"] == 100.0
    assert kept.state(116 * S).devices == ()


def test_a_slow_agents_readings_live_until_its_next_tick() -> None:
    kept = latest(interval=60, slow=300)
    kept.observe("nvidia", reading(100, sample("nvidia:0")))
    (device,) = kept.state(240 * S).devices
    assert device.values == {"power_watts": 100.0, "memory_total_bytes": 80}
    assert kept.state(251 * S).devices == ()


def test_a_new_driver_epoch_starts_the_sums_anew() -> None:
    kept = latest()
    kept.observe("nvidia", reading(100, sample("nvidia:0")))
    kept.observe("nvidia", reading(105, sample("nvidia:0", slow=False), epoch=2))
    (device,) = kept.state(105 * S).devices
    assert device.since_ns == 105 * S
    assert device.info.model == "H100"
    assert "memory_total_bytes" not in device.values


def test_events_are_counted_by_kind_and_code_and_a_later_version_adds_what_it_grew() -> None:
    kept = latest()
    kept.observe("nvidia", reading(100, sample("nvidia:0")))
    event = device_event(NODE, "kernel", "xid", 100 * S, "x", uid="nvidia:0", code=45)
    event.count = 5
    kept.happened(event)
    event.count = 12
    kept.happened(event)
    kept.happened(event)
    kept.happened(device_event(NODE, "kernel", "hang", 101 * S, "y"))
    found = kept.state(101 * S)
    assert found.devices[0].events == {EventKey("xid", 45): 12}
    assert found.nodes[0].events == {EventKey("hang", None): 1}
    assert found.nodes[0].labels == {"rack": "r1"}


def test_events_of_instances_that_came_and_went_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xpulse.northbound.latest._PLACES", 3)
    kept = latest()
    kept.observe("nvidia", reading(100, sample("nvidia:0")))
    for cut in range(10):
        kept.happened(device_event(NODE, "kernel", "xid", (100 + cut) * S, "x", uid=f"nvidia:MIG-{cut}", code=13))
        kept.happened(device_event(NODE, "kernel", "xid", (100 + cut) * S, "x", uid="nvidia:0", code=13))
    assert len(kept._events) == 3
    assert kept.state(101 * S).devices[0].events == {EventKey("xid", 13): 10}, "who is still heard of is kept"
