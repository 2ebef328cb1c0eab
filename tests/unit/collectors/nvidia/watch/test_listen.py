"""NVML's event set on the fake libnvidia-ml, through the real pynvml: Xids with their meaning, storms, and sets that break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from collectors.nvidia.source import Source
from collectors.nvidia.watch.event import Watched, Where
from collectors.nvidia.watch.listen import MOST_AT_ONCE, Listener
from collectors.nvidia.watch.meaning import MOST_OPEN, Counted, Happened
from schemas.identity import NodeRef
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library

__all__ = ["fake_nvml", "fake_nvml_library"]
SECOND = 10**9


@dataclass
class Ear:
    state: nvml.State
    source: Source
    listener: Listener
    cards: list[Watched]
    at: float = 100.0
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)

    def hear(self, seconds: float = 1.0) -> list[v1.DeviceEvent]:
        self.at += seconds
        return self.listener.hear(self.cards, self.at, int(self.at * SECOND), self.rejects)

    def reopen(self) -> None:
        self.listener.close()
        self.source.close()
        self.source.open()
        handles = self.source.handles()
        self.cards = [Watched(card.uid, card.bdf, card.model, handle) for card, handle in zip(self.cards, handles, strict=True)]
        self.hear()


@pytest.fixture
def ear(fake_nvml: nvml.State) -> Iterator[Ear]:
    source = Source()
    source.open()
    fake_nvml.every.set(supported_event_types=0xFFFF)
    cards = [Watched(f"gpu:{i}", f"0000:1{i}:00.0", "H100", handle) for i, handle in enumerate(source.handles())]
    made = Ear(fake_nvml, source, Listener(source, Where(NodeRef("c", "n"), "boot")), cards)
    assert made.hear() == []
    yield made
    made.listener.close()
    source.close()


def kind(event: v1.DeviceEvent) -> str:
    return v1.DeviceEventKind.Name(event.kind).removeprefix("DEVICE_EVENT_KIND_").lower()


def test_an_xid_says_what_it_means(ear: Ear) -> None:
    ear.state.push_xid(1, 79)
    (event,) = ear.hear()
    assert (kind(event), event.uid, event.bdf, event.code, event.source, event.count) == ("xid", "gpu:1", "0000:11:00.0", 79, "nvidia", 1)
    assert event.severity == v1.Severity.SEVERITY_CRITICAL
    assert event.event_class == v1.EventClass.EVENT_CLASS_HARDWARE
    assert event.action not in (v1.RecommendedAction.RECOMMENDED_ACTION_UNSPECIFIED, v1.RecommendedAction.RECOMMENDED_ACTION_NONE)
    assert (event.mnemonic, event.boot_id, event.at_ns) == ("ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "boot", int(ear.at * SECOND))
    assert not event.HasField("gpu_instance_id")
    assert ear.hear() == []


def test_an_xid_of_an_instance_names_it(ear: Ear) -> None:
    ear.state.push_xid(0, 43, gi=2, ci=1)
    (event,) = ear.hear()
    assert (event.uid, event.gpu_instance_id, event.compute_instance_id) == ("gpu:0", 2, 1)


def test_an_xid_whose_number_nvml_does_not_know_has_none(ear: Ear) -> None:
    """nvml.h: the data is 999 where the number is unknown; device-plugin#259 took it for Xid 999."""
    ear.state.push_xid(0, 999)
    (event,) = ear.hear()
    assert (kind(event), event.HasField("code")) == ("xid", False)


@pytest.mark.parametrize(
    ("bits", "told", "severity"),
    [
        (0x1, "vendor_log", "INFO"),
        (0x2, "vendor_log", "CRITICAL"),
        (0x100, "reconfigured", "INFO"),
        (0x200, "vendor_log", "WARNING"),
        (0x400, "vendor_log", "WARNING"),
        (0x800, "vendor_log", "CRITICAL"),
        (0x1000, "vendor_log", "WARNING"),
        (0x2000, "vendor_log", "CRITICAL"),
        (0x4000, "vendor_log", "CRITICAL"),
        (0x8000, "vendor_log", "WARNING"),
    ],
)
def test_other_events_have_a_kind_and_a_severity(ear: Ear, bits: int, told: str, severity: str) -> None:
    ear.state.push_event(0, bits, 0)
    (event,) = ear.hear()
    assert (kind(event), v1.Severity.Name(event.severity), event.details["nvml_event"]) == (told, f"SEVERITY_{severity}", f"{bits:#x}")
    assert not event.HasField("code")
    assert event.text.startswith("H100 0000:10:00.0: ")


@pytest.mark.parametrize("bits", [0x4, 0x10, 0x80], ids=["P-state", "clock", "power source"])
def test_readings_are_no_events(ear: Ear, bits: int) -> None:
    ear.state.push_event(0, bits, 0)
    assert ear.hear() == []


def test_only_what_the_card_supports_is_registered(fake_nvml: nvml.State) -> None:
    fake_nvml.device(0).set(supported_event_types=0x1F)
    fake_nvml.device(1).set(supported_event_types=0)
    source = Source()
    source.open()
    cards = [Watched(f"gpu:{i}", "", "", handle) for i, handle in enumerate(source.handles())]
    rejects: Counter[tuple[str, str]] = Counter()
    listener = Listener(source, Where(NodeRef("c", "n"), ""))
    listener.hear(cards, 1.0, 1, rejects)
    fake_nvml.push_xid(0, 31)
    assert [event.code for event in listener.hear(cards, 2.0, 2, rejects)] == [31]
    assert rejects == {("events", "not_supported"): 1}
    listener.close()


def test_a_storm_is_one_event_with_a_count_and_leaves_time_for_the_tick(ear: Ear) -> None:
    """NVSentinel#1629: Xid 45 by the hundred thousand."""
    with ear.state.changing():
        for _ in range(MOST_AT_ONCE + 88):
            ear.state.push_xid(0, 45)
    (first,), (second,) = ear.hear(), ear.hear()
    assert (first.count, second.count) == (MOST_AT_ONCE, MOST_AT_ONCE + 88)
    assert (first.id, first.at_ns) == (second.id, second.at_ns)
    assert second.last_at_ns == first.at_ns + SECOND
    assert ear.hear() == []


def test_the_same_after_a_minute_of_silence_is_a_new_event(ear: Ear) -> None:
    ear.state.push_xid(0, 13)
    (first,) = ear.hear()
    ear.state.push_xid(0, 13)
    (again,) = ear.hear(59)
    ear.state.push_xid(0, 13)
    (new,) = ear.hear(61)
    assert (again.id, again.count) == (first.id, 2)
    assert (new.id != first.id, new.count) == (True, 1)


def test_a_set_that_breaks_is_made_anew_with_growing_waits_and_told_once(ear: Ear) -> None:
    ear.state.fail("nvmlEventSetWait_v2", 15)
    (event,) = ear.hear()
    assert (kind(event), "NVML 15" in event.text) == ("vendor_log", True)
    asked = ear.rejects["events", "nvml_15"]
    for _ in range(200):
        assert ear.hear() == []
    assert asked == 1
    assert 5 < ear.rejects["events", "nvml_15"] < 10
    ear.state.fail("nvmlEventSetWait_v2", 0)
    for _ in range(300):
        ear.hear()
    ear.state.push_xid(0, 31)
    assert [event.code for event in ear.hear()] == [31]


def test_a_lost_card_spoils_no_others_events(ear: Ear) -> None:
    """D48/D50: the set answers GPU_IS_LOST once; without the lost card a new one works."""
    ear.state.fail("nvmlEventSetWait_v2", 15)
    ear.hear()
    ear.state.fail("nvmlEventSetWait_v2", 0)
    ear.state.lose(0)
    ear.cards[0] = Watched("gpu:0", "0000:10:00.0", "H100", None)
    ear.hear(5)
    ear.state.push_xid(1, 31)
    assert [(event.uid, event.code) for event in ear.hear()] == [("gpu:1", 31)]


def test_a_new_session_is_heard(ear: Ear) -> None:
    ear.reopen()
    ear.state.push_xid(0, 31)
    assert [event.code for event in ear.hear()] == [31]


def test_an_equal_event_of_a_new_session_is_the_same_event(ear: Ear) -> None:
    ear.state.push_xid(0, 31)
    (first,) = ear.hear()
    ear.reopen()
    ear.state.push_xid(0, 31)
    (again,) = ear.hear()
    assert (again.id, again.count) == (first.id, 2)


@pytest.mark.parametrize("code", [3, 13], ids=["not supported", "no such function"])
def test_a_driver_without_event_sets_is_asked_once(fake_nvml: nvml.State, code: int) -> None:
    fake_nvml.fail("nvmlEventSetCreate", code)
    source = Source()
    source.open()
    cards = [Watched("gpu:0", "", "", source.handles()[0])]
    rejects: Counter[tuple[str, str]] = Counter()
    listener = Listener(source, Where(NodeRef("c", "n"), ""))
    assert [listener.hear(cards, float(at), at, rejects) for at in range(1000)] == [[]] * 1000
    assert rejects == {("events", f"nvml_{code}"): 1}


def test_many_kinds_of_events_are_counted_in_bounded_room() -> None:
    counted = Counted(Where(NodeRef("c", "n"), ""))
    card = Watched("gpu:0", "", "", None)
    for number in range(3 * MOST_OPEN):
        counted.step([Happened(card, 0x1, number, None, None)], number)
    assert len(counted._open) == MOST_OPEN


def test_what_was_told_does_not_change_later() -> None:
    counted = Counted(Where(NodeRef("c", "n"), ""))
    one = Happened(None, 0x40000, 1, None, None)
    (first,) = counted.step([one], 1)
    counted.step([one, one], 2)
    assert (first.count, first.uid, "0x40000" in first.text) == (1, "", True)
