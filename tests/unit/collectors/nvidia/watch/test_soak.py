"""A driver that fails in every way by turns, for a long time: memory and file descriptors stay where they are, and the readings return.

gpustack#5342: an exception that was kept and raised again grew to 37 GiB and 201,000 descriptors in 10 days. `XPULSE_SOAK_CYCLES` makes it
longer (a day at 1 Hz is 86400); what is measured is the second half against the first.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.contract import Env, Reading, Ready
from collectors.nvidia.plugin import Plugin
from collectors.nvidia.settings import Nvidia
from collectors.procfs.pci import PciBus
from collectors.settings import PluginSettings
from collectors.worker import FAST, FAST_AND_SLOW
from schemas.identity import NodeRef
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from tests.fakes.procfs import FakePciBus, FakeProc
from tests.unit.collectors.test_agent import Running, started

__all__ = ["fake_nvml", "fake_nvml_library", "started"]
ENV = Env(NodeRef("c", "n"), "boot", "0", 10**9)
CYCLES = int(os.environ.get("XPULSE_SOAK_CYCLES", "390"))
MOST_GROWTH_BYTES = 1536 * 1024
GIB = 1 << 30

CODES = (1, 2, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 17, 18, 19, 24, 25, 26, 28, 999)
SYMBOLS = (
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetProcessesUtilizationInfo",
    "nvmlGpmSampleGet",
    "nvmlGpmMetricsGet",
    "nvmlEventSetWait_v2",
    "nvmlEventSetCreate",
    "nvmlDeviceRegisterEvents",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetNvLinkState",
)


class Bad:
    """A node whose driver fails; each fault is begun and ended, so that a turn leaves nothing behind."""

    def __init__(self, state: nvml.State, folder: Path) -> None:
        self.state = state
        self.at = 0.0
        self.proc, self.bus = FakeProc(folder / "proc"), FakePciBus(folder / "devices")
        self.bdfs = [str(device["bus_id"])[4:].lower() for device in state.data["devices"]]
        for index, bdf in enumerate(self.bdfs):
            self.bus.add(bdf)
            self.proc.give_driver(bdf)
            numbers = range(100 + 10 * index, 103 + 10 * index)
            state.processes(index, [{"pid": pid, "memory_bytes": GIB, "sm_percent": 50} for pid in numbers])
            for pid in numbers:
                self.proc.add(pid)
        settings = Nvidia(proc_folder=self.proc.root, pcie_window=False)
        self.plugin = Plugin(settings, ENV, bus=PciBus(self.bus.root), monotonic=lambda: self.at)
        assert isinstance(self.plugin.probe(), Ready)
        self.events: Counter[str] = Counter()
        self.rejects: Counter[tuple[str, str]] = Counter()

    def read(self, *, slow: bool = False, seconds: float = 1.0) -> Reading:
        self.at += seconds
        reading = self.plugin.read(FAST_AND_SLOW if slow else FAST, time.monotonic() + 60)
        self.events.update(v1.DeviceEventKind.Name(event.kind) for event in reading.events if isinstance(event, v1.DeviceEvent))
        self.rejects.update(reading.rejects)
        return reading

    def one_call(self, turn: int) -> None:
        symbol, code, device = SYMBOLS[turn % len(SYMBOLS)], CODES[turn // 3 % len(CODES)], turn % 2
        node_wide = symbol.startswith("nvmlEventSet")
        self.state.fail(symbol, code, device=None if node_wide else device)
        self.read(seconds=10, slow=turn % 4 == 0)
        self.state.fail(symbol, 0, device=None if node_wide else device)

    def lost(self, turn: int) -> None:
        self.state.lose(turn % 2, 15 if turn % 3 else 16)
        self.read()
        self.read(slow=True)
        self.state.recover(turn % 2)

    def unplugged(self, turn: int) -> None:
        self.state.unplug(1)
        self.bus.remove(self.bdfs[1])
        self.read(slow=True, seconds=60)
        self.state.plug(1)
        self.bus.add(self.bdfs[1])
        self.read(slow=True)

    def reloaded(self, turn: int) -> None:
        self.read(slow=True, seconds=400)
        self.state.unload_driver()
        self.read(seconds=60)
        self.state.load_driver()

    def container(self, turn: int) -> None:
        self.state.break_container(999 if turn % 2 else 1)
        self.read()
        self.state.mend_container()

    def layout(self, turn: int) -> None:
        self.state.device(0).set(process_stride_bytes=(16, 32, 40)[turn % 3])
        self.read(seconds=400)
        self.state.device(0).forget("process_stride_bytes")

    def stormy(self, turn: int) -> None:
        with self.state.changing():
            for number in range(8):
                self.state.push_xid(turn % 2, (13, 31, 45, 48, 79, 94, turn % 200, 999)[number])
            del self.state.data["events"][:-8]
        self.read()

    def cut(self, turn: int) -> None:
        self.state.mig(0, ["3g.40gb", "1g.10gb"])
        self.read(slow=True)
        self.state.mig(0, None)

    def cycle(self, turn: int) -> None:
        faults: tuple[Callable[[int], None], ...] = (
            *([self.one_call] * 6),
            self.lost,
            self.reloaded,
            self.container,
            self.layout,
            self.stormy,
            self.unplugged,
            self.cut,
        )
        faults[turn % len(faults)](turn)

    def well(self) -> Reading:
        """A full round after the last fault, when every wait that grew meanwhile is over."""
        for _ in range(12):
            self.read(slow=True, seconds=400)
        return self.read(slow=True, seconds=400)


@pytest.fixture
def bad(fake_nvml: nvml.State, tmp_path: Path) -> Iterator[Bad]:
    made = Bad(fake_nvml, tmp_path)
    yield made
    made.plugin.close()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_and_descriptors_stay_flat_and_the_readings_return(bad: Bad, caplog: pytest.LogCaptureFixture) -> None:
    for turn in range(CYCLES // 2):
        bad.cycle(turn)
    caplog.clear()  # what is logged is the test's, not the plugin's
    before, open_before = resident_bytes(), descriptors()
    for turn in range(CYCLES // 2, CYCLES):
        bad.cycle(turn)
    grown, opened = resident_bytes() - before, descriptors() - open_before
    reading = bad.well()
    assert opened == 0
    assert grown < MOST_GROWTH_BYTES, f"{grown / 2**20:.2f} MiB in {CYCLES // 2} cycles"
    samples = reading.samples[0].samples
    assert [(sample.temperature_celsius, sample.HasField("power_limit_watts")) for sample in samples] == [(59, True)] * 2
    processes = reading.samples[0].processes
    assert processes is not None
    assert {process.pid for process in processes} == {100, 101, 102, 110, 111, 112}
    bad.state.push_xid(0, 31)
    assert [event.code for event in bad.read().events if isinstance(event, v1.DeviceEvent) and event.HasField("code")] == [31]
    seen = {"LOST", "RETURNED", "SOURCE_UNAVAILABLE", "RECOVERED", "XID", "VENDOR_LOG"}
    assert {f"DEVICE_EVENT_KIND_{kind}" for kind in seen} <= set(bad.events)
    assert bad.rejects["processes", "processes_implausible"] > 0
    assert bad.rejects["events", "nvml_23"] == 0  # no room for another set: one was left behind each time


@pytest.mark.timeout(120)
def test_the_agent_keeps_no_descriptor_of_a_plugin_that_hangs_or_dies_again_and_again(
    fake_nvml: nvml.State, fake_nvml_library: Path, monkeypatch: pytest.MonkeyPatch, started: Callable[..., Running]
) -> None:
    """Hangs are cut by the supervisor; each leaves no pipe, no process and no thread in the agent."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml_library.parent))
    monkeypatch.setattr("collectors.avoided.FIRST_SECONDS", 0.3)  # the cards that hung come back soon, to hang again
    settings = {"processes": False, "pci_check": False}
    quick = {"hang_seconds": 0.6, "read_deadline_seconds": 0.3, "restart_min_seconds": 0.01, "restart_max_seconds": 0.02}
    running = started({"nvidia": PluginSettings(settings=settings)}, **quick)

    def restart(round_number: int) -> None:
        read = running.plugin("nvidia").reads if running.stats.plugins else 0
        running.until(lambda: bool(running.stats.plugins) and running.plugin("nvidia").reads > read)
        restarts = running.plugin("nvidia").restarts
        symbol = ("nvmlDeviceGetFieldValues", "nvmlDeviceGetMemoryInfo")[round_number % 2]
        fake_nvml.hang(symbol)
        running.until(lambda: running.plugin("nvidia").restarts > restarts)
        fake_nvml.release(symbol)

    def whole() -> None:
        """Both cards are read: no restart and no try is under way."""
        running.until(lambda: (running.plugin("nvidia").state, running.plugin("nvidia").devices) == ("reading", 2))

    restart(0)
    whole()
    open_before = descriptors()
    for round_number in range(1, 3):
        restart(round_number)
    whole()
    running.until(lambda: descriptors() <= open_before)
    assert running.events().count(("nvidia", "hang")) == 3
