"""The driver's list against the PCI bus: missing cards, cards that fell off, and everything that only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.nvidia.watch.bus import BusCheck, News
from collectors.nvidia.watch.event import Watched, Where
from collectors.procfs.pci import PciBus
from schemas.identity import NodeRef
from schemas.telemetry import v1
from tests.fakes.procfs import FakePciBus, FakeProc

A = Watched("nvidia:GPU-a", "0000:10:00.0", "H100", object())
B = Watched("nvidia:GPU-b", "0000:18:00.0", "H100", object())


class Host:
    def __init__(self, folder: Path) -> None:
        self.bus = FakePciBus(folder / "devices")
        self.proc = FakeProc(folder / "proc")
        self.check = BusCheck(PciBus(self.bus.root), Where(NodeRef("c", "n"), "boot"), self.proc.root)

    def look(self, *cards: Watched) -> News:
        return self.check.look(cards, 7)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Two cards on the bus, bound to the driver."""
    made = Host(tmp_path)
    for card in (A, B):
        made.bus.add(card.bdf)
    made.proc.give_driver(A.bdf, "0000:18:00.0")
    return made


def told(news: News) -> list[tuple[str, str, str]]:
    kinds = [v1.DeviceEventKind.Name(event.kind).removeprefix("DEVICE_EVENT_KIND_").lower() for event in news.events]
    return [(kind, event.uid, event.bdf) for kind, event in zip(kinds, news.events, strict=True)]


def test_a_bus_like_the_list_is_no_news(host: Host) -> None:
    assert [host.look(A, B) for _ in range(3)] == [News()] * 3


def test_a_card_that_the_driver_does_not_show_is_missing_at_the_second_look(host: Host) -> None:
    first, second, third = host.look(A), host.look(A), host.look(A)
    assert (first, first.look_anew) == (News((), look_anew=True), True)
    assert (told(second), second.look_anew) == ([("missing", "", B.bdf)], False)
    assert second.events[0].severity == v1.Severity.SEVERITY_CRITICAL
    assert "dmesg" in second.events[0].text
    assert third == News()
    again = host.look(A, B)
    assert told(again) == [("added", "", "")]
    assert again.events[0].severity == v1.Severity.SEVERITY_INFO
    assert host.look(A, B) == News()


def test_a_new_session_that_shows_it_says_nothing(host: Host) -> None:
    """gpu-operator#482, device-plugin#34: a new GPU was not discovered until a restart."""
    assert host.look(A).look_anew
    assert host.look(A, B) == News()


def test_a_card_that_was_listed_before_is_missing_by_its_name(host: Host) -> None:
    host.look(A, B)
    host.look(A)
    assert told(host.look(A)) == [("missing", B.uid, B.bdf)]
    assert told(host.look(A, B)) == [("added", "", "")]
    host.look(A)
    assert told(host.look(A)) == [("missing", B.uid, B.bdf)]


def test_a_card_without_a_driver_is_missing_with_another_remedy(host: Host) -> None:
    host.bus.add("0000:20:00.0", driver="")
    host.look(A, B)
    news = host.look(A, B)
    assert told(news) == [("missing", "", "0000:20:00.0")]
    assert "no driver is bound" in news.events[0].text


def test_a_card_that_left_the_bus_is_lost_once_and_again_after_it_came_back(host: Host) -> None:
    host.look(A, B)
    host.bus.remove(B.bdf)
    news = host.look(A, B)
    assert told(news) == [("lost", B.uid, B.bdf)]
    assert "not on the PCI bus any more" in news.events[0].text
    assert host.look(A, B) == News()
    host.bus.add(B.bdf)
    host.look(A, B)
    host.bus.remove(B.bdf)
    assert told(host.look(A)) == [("lost", B.uid, B.bdf)]


@pytest.mark.parametrize(
    ("class_code", "driver", "virtual"),
    [
        (0x068000, "nvidia-nvswitch", False),
        (0x068000, "nvidia", False),
        (0x040300, "snd_hda_intel", False),
        (0x0C0330, "xhci_hcd", False),
        (0x030200, "vfio-pci", False),
        (0x030200, "nvgrace_gpu_vfio_pci", False),
        (0x030000, "nouveau", False),
        (0x030200, "nvidia", True),
    ],
    ids=["NVSwitch", "NVSwitch on nvidia", "audio", "USB", "given to a virtual machine", "the same on Grace", "nouveau", "vGPU function"],
)
def test_what_is_no_card_of_this_driver_is_not_missing(host: Host, class_code: int, driver: str, virtual: bool) -> None:
    host.bus.add("0000:30:00.0", class_code=class_code, driver=driver, virtual=virtual)
    host.proc.give_driver("0000:30:00.0")
    assert [host.look(A, B) for _ in range(3)] == [News()] * 3


@pytest.mark.parametrize("class_code", [0x030000, 0x030200, 0x038000, 0x120000], ids=["VGA", "3D", "other display", "accelerator"])
def test_every_class_of_gpu_counts(host: Host, class_code: int) -> None:
    host.bus.add("0000:30:00.0", class_code=class_code)
    host.proc.give_driver("0000:30:00.0")
    host.look(A, B)
    assert told(host.look(A, B)) == [("missing", "", "0000:30:00.0")]


def test_a_container_that_was_given_one_card_does_not_miss_the_others(tmp_path: Path) -> None:
    host = Host(tmp_path)
    for card in (A, B):
        host.bus.add(card.bdf)
    host.proc.give_driver(A.bdf)
    assert [host.look(A) for _ in range(3)] == [News()] * 3


def test_where_the_driver_lists_nothing_in_proc_the_bus_decides(tmp_path: Path) -> None:
    host = Host(tmp_path)
    for card in (A, B):
        host.bus.add(card.bdf)
    host.look(A)
    assert told(host.look(A)) == [("missing", "", B.bdf)]


def test_a_bus_that_cannot_be_seen_says_nothing(host: Host, tmp_path: Path) -> None:
    check = BusCheck(PciBus(tmp_path / "nowhere"), Where(NodeRef("c", "n"), "boot"), host.proc.root)
    assert [check.look([A, B], 7) for _ in range(3)] == [News()] * 3


def test_the_only_card_that_left_the_bus_is_lost(host: Host) -> None:
    host.bus.add("0000:00:1f.0", vendor=0x8086)
    host.look(A, B)
    for card in (A, B):
        host.bus.remove(card.bdf)
    assert told(host.look(A, B)) == [("lost", A.uid, A.bdf), ("lost", B.uid, B.bdf)]


def test_a_bus_that_shows_nothing_at_all_is_not_believed(host: Host) -> None:
    host.look(A, B)
    for card in (A, B):
        host.bus.remove(card.bdf)
    assert host.look(A, B) == News()


def test_a_card_that_is_on_no_pci_bus_is_not_lost(host: Host) -> None:
    """GB10 and Tegra: the GPU of the SoC."""
    assert [host.look(A, B, Watched("nvidia:x", "000f:01:00.0", "GB10", None)) for _ in range(3)] == [News()] * 3
