"""The whole plugin with processes, events and the bus: what a tick carries, and that nothing of it can stop the readings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.contract import Env, Reading, Ready
from collectors.nvidia.plugin import Plugin
from collectors.nvidia.settings import Nvidia
from collectors.procfs.pci import PciBus
from collectors.worker import FAST, FAST_AND_SLOW
from schemas.identity import NodeRef
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from tests.fakes.procfs import FakePciBus, FakeProc

__all__ = ["fake_nvml", "fake_nvml_library"]
ENV = Env(NodeRef("c", "n"), "boot", "0", 10**9)
GIB = 1 << 30


class Host:
    """Two H100 with their bus and processes, and the plugin on them."""

    def __init__(self, state: nvml.State, folder: Path) -> None:
        self.state = state
        self.proc = FakeProc(folder / "proc")
        self.bus = FakePciBus(folder / "devices")
        self.bdfs = [str(device["bus_id"])[4:].lower() for device in state.data["devices"]]
        for index, bdf in enumerate(self.bdfs):
            self.bus.add(bdf)
            self.proc.give_driver(bdf)
            state.processes(index, [])
        self.plugin = self.start()

    def start(self, **settings: Any) -> Plugin:
        if hasattr(self, "plugin"):
            self.plugin.close()
        self.plugin = Plugin(Nvidia(proc_folder=self.proc.root, **settings), ENV, bus=PciBus(self.bus.root))
        assert isinstance(self.plugin.probe(), Ready)
        return self.plugin

    def use(self, index: int, *pids: int) -> None:
        self.state.processes(index, [{"pid": pid, "memory_bytes": GIB} for pid in pids])
        for pid in pids:
            self.proc.add(pid)

    def read(self, *, slow: bool = True) -> Reading:
        return self.plugin.read(FAST_AND_SLOW if slow else FAST, time.monotonic() + 60)


@pytest.fixture
def host(fake_nvml: nvml.State, tmp_path: Path) -> Iterator[Host]:
    made = Host(fake_nvml, tmp_path)
    yield made
    made.plugin.close()


def pids(reading: Reading) -> list[int] | None:
    processes = reading.samples[0].processes
    return None if processes is None else [process.pid for process in processes]


def said(reading: Reading) -> list[tuple[str, str]]:
    events = [event for event in reading.events if isinstance(event, v1.DeviceEvent)]
    return [(v1.DeviceEventKind.Name(event.kind).removeprefix("DEVICE_EVENT_KIND_").lower(), event.uid[-2:]) for event in events]


def test_a_tick_carries_processes_and_the_next_does_not(host: Host) -> None:
    host.use(0, 5)
    first, second = host.read(), host.read(slow=False)
    assert (pids(first), pids(second)) == ([5], None)
    processes = first.samples[0].processes
    assert processes is not None
    assert processes[0].device_uid == first.samples[0].samples[0].uid
    assert said(first) == []


def test_more_memory_than_the_card_has_is_seen_with_the_cards_own_total(host: Host) -> None:
    host.state.processes(0, [{"pid": 5, "memory_bytes": 90 * GIB}])
    host.proc.add(5)
    reading = host.read()
    assert pids(reading) is None
    assert reading.rejects["processes", "processes_implausible"] == 1


def test_processes_of_instances_are_theirs(host: Host) -> None:
    host.state.mig(0, ["3g.40gb", "3g.40gb"])
    first = host.state.instances(0)[0]
    host.proc.add(5)
    host.state.processes(0, [{"pid": 5, "memory_bytes": GIB, "gi": first["gi"], "ci": first["ci"]}])
    reading = host.start().read(FAST_AND_SLOW, time.monotonic() + 60)
    parts = [sample.uid for sample in reading.samples[0].samples if sample.info.parent_uid]
    processes = reading.samples[0].processes
    assert processes is not None
    assert [process.device_uid for process in processes] == parts[:1]


def test_an_xid_is_told_in_the_tick_that_sees_it(host: Host) -> None:
    host.read()
    host.state.push_xid(1, 31)
    assert said(host.read(slow=False)) == [("xid", "91")]


def test_xids_are_told_again_after_the_driver_was_loaded_anew(host: Host) -> None:
    host.read()
    host.state.unload_driver()
    host.read(slow=False)
    host.state.load_driver()
    deadline = time.monotonic() + 20
    while "recovered" not in [kind for kind, _ in said(host.read())]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    host.read(slow=False)
    host.state.push_xid(0, 31)
    assert ("xid", "90") in said(host.read(slow=False))


def test_a_lost_card_does_not_hide_that_the_driver_went_away(host: Host) -> None:
    """The healthy card is back with the driver at the next tick, not at the next slow one."""
    host.read()
    host.state.lose(0)
    assert said(host.read(slow=False)) == [("lost", "90")]
    host.state.unload_driver()
    assert ("source_unavailable", "") in said(host.read(slow=False))


def test_a_card_that_came_to_the_bus_is_listed_by_a_new_session(host: Host) -> None:
    """gpu-operator#482, device-plugin#34."""
    host.state.unplug(1)
    host.start()
    host.bus.remove(host.bdfs[1])
    assert len(host.read().samples[0].samples) == 1
    host.state.plug(1)
    host.bus.add(host.bdfs[1])
    assert said(host.read()) == []
    assert len(host.read().samples[0].samples) == 2
    assert said(host.read()) == []


def test_a_card_that_never_came_up_is_missing(host: Host) -> None:
    host.bus.add("0000:99:00.0")
    host.proc.give_driver("0000:99:00.0")
    assert said(host.read()) == []
    assert said(host.read()) == [("missing", "")]
    assert said(host.read()) == []


def test_a_card_that_fell_off_the_bus_is_told_beside_its_silence(host: Host) -> None:
    host.read()
    host.state.lose(1)
    host.bus.remove(host.bdfs[1])
    assert said(host.read()) == [("lost", "91"), ("lost", "91")]


def test_slow_fields_that_take_long_are_read_less_often_and_it_is_said_once(host: Host) -> None:
    host.start(slow_read_seconds=1e-9, events=False, pci_check=False, processes=False)
    readings = [host.read() for _ in range(7)]
    read = [reading.samples[0].samples[0].HasField("power_limit_watts") for reading in readings]
    assert read == [True, False, True, False, False, False, True]
    assert [said(reading) for reading in readings] == [[("vendor_log", "")], *[[]] * 6]


def test_each_part_has_a_switch(host: Host) -> None:
    host.start(processes=False, events=False, pci_check=False)
    host.use(0, 5)
    host.bus.add("0000:99:00.0")
    host.proc.give_driver("0000:99:00.0")
    host.read()
    host.state.push_xid(0, 31)
    reading = host.read()
    assert (pids(reading), said(reading)) == (None, [])


def test_processes_of_a_demonstration_are_shown_although_they_do_not_exist(host: Host) -> None:
    host.start(simulated=True)
    host.state.processes(0, [{"pid": 11_327, "memory_bytes": GIB}])
    host.bus.add("0000:99:00.0")
    host.proc.give_driver("0000:99:00.0")
    host.read()
    host.state.push_xid(0, 31)
    reading = host.start(simulated=True).read(FAST_AND_SLOW, time.monotonic() + 60)
    assert pids(reading) == [11_327]
    assert said(reading) == []
    host.state.push_xid(0, 31)
    (event,) = host.read().events
    assert isinstance(event, v1.DeviceEvent)
    assert event.simulated


def test_trouble_beside_costs_no_sample_and_is_counted(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.use(0, 5)
    (host.proc.root / "stat").write_text("nothing")
    reading = host.read()
    assert len(reading.samples[0].samples) == 2
    assert reading.rejects["processes", "error"] == 1
    assert "no btime" in caplog.text


def test_a_uuid_with_zero_bytes_is_whole(host: Host) -> None:
    """nvitop#100: 13096139-7ada-8313-ee08-000dd8540fe1 ended at its zero byte."""
    uuid = "GPU-13096139-7ada-8313-ee08-000dd8540fe1"
    host.state.device(0).set(uuid=uuid)
    host.start()
    host.use(0, 5)
    reading = host.read()
    processes = reading.samples[0].processes
    assert processes is not None
    assert (reading.samples[0].samples[0].uid, processes[0].device_uid) == (f"nvidia:{uuid}", f"nvidia:{uuid}")
