"""What goes wrong with one message or one observer takes nothing else along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from collectors.addresses import Addresses
from collectors.contract import NodeReading, Reading
from collectors.events import device_event
from collectors.outlet import Outlet, Shared
from collectors.publisher import Publisher
from collectors.stats import Tally
from schemas import topics
from schemas.builder import SampleBuilder
from schemas.flow import Busy, Out
from schemas.identity import NodeRef
from schemas.telemetry import v1

NODE = NodeRef("c", "n")
SECOND = 10**9


class Raises:
    """An observer with a mistake in it."""

    def observe(self, source: str, reading: Reading) -> None:
        raise KeyError(source)

    def happened(self, event: v1.DeviceEvent) -> None:
        raise RuntimeError(event.text)


def outlet(outs: list[Out]) -> tuple[Outlet, Shared, Tally]:
    shared = Shared(NODE, outs.extend, lambda: SECOND, Addresses(NODE))
    tally = Tally("fake")
    return Outlet(tally, Publisher("fake", NODE, agent_epoch=1, interval_ns=SECOND, boot_id="boot"), shared), shared, tally


def reading(*uids: str, text: str = "x", processes: tuple[v1.ProcessSample, ...] | None = None) -> Reading:
    samples = tuple(SampleBuilder(uid).set("power_watts", 3.5).build() for uid in uids)
    event = device_event(NODE, "fake", "vendor_log", SECOND, text, uid=uids[0])
    return Reading((NodeReading(SECOND, samples, processes=processes),), (event,))


def by_topic(outs: list[Out]) -> Counter[str]:
    return Counter(out.topic for out in outs)


def test_an_observer_that_raises_is_counted_and_the_bus_gets_everything(caplog: pytest.LogCaptureFixture) -> None:
    outs: list[Out] = []
    out, shared, tally = outlet(outs)
    shared.observer = Raises()
    out.read(reading("a", "b"))
    out.read(reading("a"))  # b is lost
    out.say("source_unavailable", "x")
    assert by_topic(outs) == {topics.SAMPLES: 2, topics.DEVICE_EVENTS: 4}
    assert tally.dropped == {"observer": 6}
    assert len(caplog.records) == 2, "each kind of error once"


def test_samples_that_are_too_large_take_no_event_along(caplog: pytest.LogCaptureFixture) -> None:
    outs: list[Out] = []
    out, _, tally = outlet(outs)
    huge = tuple(v1.ProcessSample(device_uid="a", pid=pid, command_line="x" * 65_536) for pid in range(1, 100))
    out.read(reading("a", "b", processes=huge))
    assert by_topic(outs) == {topics.DEVICE_EVENTS: 1}
    assert tally.dropped == {"too_large": 2}
    assert "samples were not sent" in caplog.text
    out.read(reading("a", "b"))
    batch = next(v1.SampleBatch.FromString(o.value or b"") for o in outs if o.topic == topics.SAMPLES)
    assert [device.full for device in batch.devices] == [True, True], "who missed them gets everything at once"


def test_an_event_that_is_too_large_takes_no_sample_and_no_other_event_along() -> None:
    outs: list[Out] = []
    out, _, tally = outlet(outs)
    out.read(reading("a", "b", text="x" * (5 << 20)))
    assert by_topic(outs) == {topics.SAMPLES: 1}
    assert tally.dropped == {"too_large": 1}
    out.read(reading("a"))
    assert by_topic(outs) == {topics.SAMPLES: 2, topics.DEVICE_EVENTS: 2}


def test_what_found_no_room_is_offered_again_and_counted_where_the_agent_ends_without_room() -> None:
    outs: list[Out] = []
    out, shared, tally = outlet(outs)
    room = shared.publish

    def full(outs: Sequence[Out]) -> None:
        raise Busy(1.0, "full")

    shared.publish = full
    out.say("source_unavailable", "gone")
    out.retry()
    assert outs == []
    shared.publish = room
    out.retry()
    out.retry()
    assert by_topic(outs) == {topics.DEVICE_EVENTS: 1}
    shared.publish = full
    out.say("hang", "a")
    out.say("hang", "b")
    out.end()
    out.end()
    assert +tally.dropped == {"bus_full": 2}, "and not twice"
