"""The kernel plugin: the first look, restarts, reboots, lost lines, and settings that are wrong."""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from collectors.contract import Env, Reading, Ready, Unavailable
from collectors.kernel.kmsg import Kmsg
from collectors.kernel.plugin import Plugin, create
from collectors.kernel.settings import Kernel
from collectors.nvidia.xid.verdict import Override
from schemas.catalogue import Cadence
from schemas.identity import NodeRef
from schemas.telemetry import v1
from tests.fakes.kernel_log import FakeJournal, FakeKmsg
from tests.unit.collectors.nvidia.xid.given import kind, newest, severity, xid

BOOTED_NS = 1_790_000_000_000_000_000
FAST: frozenset[Cadence] = frozenset({"fast"})
FALLEN = "GPU has fallen off the bus."


@dataclass(slots=True)
class Machine:
    """A node whose kernel logs, and the agent's plugin on it. Seconds count from the boot."""

    folder: Path
    ring: FakeKmsg = field(default_factory=FakeKmsg)
    seconds: float = 1000.0
    boot_id: str = "boot-1"
    settings: dict[str, Any] = field(default_factory=dict)

    def start(self) -> Plugin:
        self.ring.rewind()
        plugin = Plugin(
            Kernel(state_dir=self.folder, **self.settings),
            Env(NodeRef("c1", "n1"), self.boot_id, "0", 10**9),
            sources=(Kmsg(Path(os.devnull), self.ring.read),),
            wall=lambda: BOOTED_NS + round(self.seconds * 1e9),
            monotonic=lambda: round(self.seconds * 1e9),
            driver_file=self.folder / "none",
        )
        assert plugin.probe() == Ready(())
        return plugin

    def read(self, plugin: Plugin, *, after: float = 1.0) -> Reading:
        self.seconds += after
        return plugin.read(FAST, time.monotonic() + 60)

    def events(self, plugin: Plugin, *, after: float = 1.0) -> list[v1.DeviceEvent]:
        return [e for e in self.read(plugin, after=after).events if isinstance(e, v1.DeviceEvent)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_line_becomes_an_event_with_the_time_of_the_kernel(machine: Machine) -> None:
    plugin = machine.start()
    machine.ring.log(1000.25, xid(79, FALLEN))
    (event,) = machine.events(plugin)
    assert (event.cluster, event.node, event.source, event.boot_id) == ("c1", "n1", "kernel", "boot-1")
    assert (event.code, event.at_ns) == (79, BOOTED_NS + 1_000_250_000_000)
    assert "backlog" not in event.details
    assert machine.events(plugin) == []
    plugin.close()


@pytest.mark.parametrize("off", [-400.0, 400.0], ids=["behind", "ahead"])
def test_what_is_logged_now_happens_now_however_far_the_kernels_clock_is_off(machine: Machine, off: float) -> None:
    """Its stamps run free of NTP: after months live errors must not pass for a backlog, nor a storm become an event each second."""
    machine.seconds = 200 * 86_400.0
    plugin = machine.start()
    machine.read(plugin)
    found = []
    for _ in range(30):
        machine.ring.log(machine.seconds + off + 0.5, xid(31))
        found += machine.events(plugin)
    assert len({event.id for event in found}) == 1
    last = found[-1]
    assert (severity(last), "backlog" in last.details) == ("warning", False)
    began_ns = BOOTED_NS + 200 * 86_400 * 10**9
    assert began_ns <= last.first_at_ns <= began_ns + 7 * 10**9
    assert last.count > 15
    plugin.close()


def test_how_far_the_kernels_clock_is_off_is_known_after_a_restart(machine: Machine) -> None:
    machine.seconds = 200 * 86_400.0
    plugin = machine.start()
    machine.read(plugin)
    machine.ring.log(machine.seconds - 399.5, xid(31))
    machine.read(plugin)
    machine.read(plugin)  # tells that the reading before was heard
    plugin.close()
    machine.ring.log(machine.seconds - 399.0, xid(43))
    (event,) = machine.events(machine.start())
    assert (event.code, "backlog" in event.details) == (43, False)
    assert abs(event.at_ns - (BOOTED_NS + round(machine.seconds * 1e9))) < 2 * 10**9


def test_a_line_that_is_read_twice_has_one_time_although_the_clock_is_slewed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores keep an event by its time: one that was read, not known to be told and read again must not stand there twice."""
    plugin = machine.start()
    machine.ring.log(1000.0, xid(43))
    machine.read(plugin)
    machine.read(plugin)
    machine.ring.log(machine.seconds, xid(79, FALLEN))
    (first,) = machine.events(plugin)
    plugin.close()
    monkeypatch.setitem(globals(), "BOOTED_NS", BOOTED_NS + 7_654_321)
    (again,) = machine.events(machine.start())
    assert (again.id, again.at_ns) == (first.id, first.at_ns)
    monkeypatch.setitem(globals(), "BOOTED_NS", BOOTED_NS + 60 * 10**9)
    (moved,) = machine.events(machine.start())
    assert (moved.id, moved.at_ns) == (first.id, first.at_ns + 60 * 10**9 + 7_654_321), "a clock that was set is believed"


def test_the_first_look_shows_a_broken_card_and_pages_for_no_old_application(machine: Machine) -> None:
    """peers.md D6 92 (device-metrics-exporter 1.5.1): stale records marked healthy cards; evidence has an age."""
    machine.seconds = 4 * 86_400
    machine.ring.log(86_400, xid(43))
    machine.ring.log(86_500, xid(79, FALLEN))
    machine.ring.log(machine.seconds - 10, xid(31, bdf="0000:9b:00"))
    found = machine.events(machine.start())
    assert [(e.code, severity(e), e.details.get("backlog", "")) for e in found] == [
        (43, "info", "true"),
        (79, "critical", "true"),
        (31, "warning", ""),
    ]
    assert found[1].at_ns == BOOTED_NS + 86_500 * 10**9
    assert int(found[1].details["seen_at_ns"]) == BOOTED_NS + round(machine.seconds * 1e9)


def test_what_was_ended_before_the_first_look_is_no_news(machine: Machine) -> None:
    machine.seconds = 86_400
    machine.ring.log(100, xid(79, FALLEN))
    machine.ring.log(110, xid(95, bdf="0000:9b:00"))
    machine.ring.log(200, xid(154, "GPU recovery action changed from 0x1 (GPU Reset) to 0x0 (None)", bdf="0000:9b:00"))
    found = machine.events(machine.start())
    assert [(kind(e), e.code, severity(e)) for e in found] == [("xid", 79, "critical"), ("xid", 95, "info"), ("recovered", 154, "info")]


def test_a_restart_neither_repeats_nor_loses(machine: Machine) -> None:
    first = machine.start()
    for i in range(5):
        machine.ring.log(1000 + i / 10, xid(13))
    before = machine.events(first)
    machine.events(first)  # the reading before this one is told, and written down
    first.close()
    machine.ring.log(1002.5, xid(13))
    machine.ring.log(1002.6, xid(79, FALLEN))
    second = machine.start()
    after = machine.events(second) + machine.events(second, after=10)
    assert [(e.code, e.count) for e in newest(after)] == [(79, 1), (13, 6)]
    assert {e.id for e in after if e.code == 13} == {e.id for e in before}
    second.close()


def test_what_was_read_and_perhaps_not_told_is_told_again_under_the_same_id(machine: Machine) -> None:
    first = machine.start()
    machine.ring.log(1000, xid(95))
    lost = machine.events(first, after=3)  # killed before it could be told
    again = machine.events(machine.start())
    assert again == lost
    assert [e.count for e in again] == [1]


def test_a_symptom_that_waited_over_a_restart_is_not_lost(machine: Machine) -> None:
    first = machine.start()
    machine.ring.log(1000.9, xid(45))
    assert machine.events(first) == []
    assert machine.events(first, after=0.1) == []
    first.close()
    assert [e.code for e in machine.events(machine.start(), after=5)] == [45]


def test_a_stale_line_keeps_no_node_bad_after_a_reboot(machine: Machine) -> None:
    """accelerators.md §23 43 (azurehpc#648): an old line of the log kept a node drained."""
    plugin = machine.start()
    machine.ring.log(1000, xid(79, FALLEN))
    machine.events(plugin)
    machine.events(plugin)
    machine.ring, machine.boot_id, machine.seconds = FakeKmsg(), "boot-2", 30.0
    machine.ring.log(5, "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build")
    machine.ring.log(20, xid(13))
    plugin = machine.start()
    found = machine.events(plugin)
    assert [(kind(e), e.uid, e.boot_id) for e in found] == [
        ("driver_reloaded", "", "boot-2"),
        ("driver_reloaded", "", "boot-2"),
        ("xid", "", "boot-2"),
    ]
    assert "booted" in found[0].text
    assert "580.65.06" in found[1].text
    machine.events(plugin)
    assert machine.events(machine.start()) == []


def test_lost_lines_are_counted_and_said(machine: Machine) -> None:
    machine.ring = FakeKmsg(room=10)
    plugin = machine.start()
    machine.ring.log(1000, "a line")
    machine.events(plugin)
    for i in range(30):
        machine.ring.log(1001 + i / 100, f"line {i}")
    reading = machine.read(plugin)
    assert reading.rejects == {("kernel_lines", "overrun"): 20}
    (event,) = reading.events
    assert isinstance(event, v1.DeviceEvent)
    assert (event.mnemonic, event.details["lost_lines"], kind(event)) == ("KERNEL_LOG_OVERRUN", "20", "vendor_log")
    assert "log_buf_len" in event.text


def test_nonsense_is_counted(machine: Machine) -> None:
    plugin = machine.start()
    machine.ring.raw(b"nonsense")
    assert machine.read(plugin).rejects == {("kernel_lines", "nonsense"): 1}


@pytest.mark.parametrize(("settings", "wanted"), [({}, 0), ({"accept_user_lines": True}, 1)], ids=["no", "drill"])
def test_lines_from_user_space_are_drills(machine: Machine, settings: dict[str, Any], wanted: int) -> None:
    machine.settings = settings
    plugin = machine.start()
    machine.ring.log(1000, xid(79, FALLEN), facility=1)
    assert len(machine.events(plugin)) == wanted


def test_a_record_of_several_lines(machine: Machine) -> None:
    plugin = machine.start()
    lines = (
        "NVRM: The NVIDIA GPU 0000:18:00.0",
        "NVRM: (PCI ID: 10de:2901) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    )
    machine.ring.log(1000, "\n".join(lines))
    assert [(kind(e), e.bdf) for e in machine.events(plugin, after=1) + machine.events(plugin, after=3)] == [("lost", "0000:18:00.0")]


def test_other_vendors_lines_are_events_too(machine: Machine) -> None:
    plugin = machine.start()
    machine.ring.log(1000, "amdgpu 0000:1c:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!")
    (event,) = machine.events(plugin)
    assert (kind(event), event.bdf, event.mnemonic, severity(event)) == ("vendor_log", "0000:1c:00.0", "amd_uncorrectable", "critical")
    assert (event.details["vendor"], event.text) == ("amd", "The GPU found an error that it could not correct. (ERREVENT_ATHUB_INTERRUPT)")


def test_a_state_file_that_is_broken_costs_a_second_look_and_nothing_else(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    plugin = machine.start()
    machine.ring.log(1000, xid(79, FALLEN))
    machine.events(plugin)
    machine.events(plugin)
    (file,) = machine.folder.glob("kernel-*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    whole = json.loads(file.read_text())
    for broken in ("", "[]", "{}", json.dumps(whole | {"position": 3}), json.dumps(whole | {"groups": {"open": [{}]}})):
        file.write_text(broken)
        with caplog.at_level(logging.WARNING, logger="xpulse.agent"):
            assert [e.code for e in machine.events(machine.start())] == [79]
    assert len([r for r in caplog.records if "is read from the beginning of this boot" in r.message]) == 5


def test_a_folder_that_cannot_be_written_is_said_once(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine.folder = machine.folder / "file" / "folder"
    machine.folder.parent.write_text("")
    plugin = machine.start()
    for i in range(3):
        machine.ring.log(1000 + i, xid(79, FALLEN))
        machine.events(plugin, after=20)
    assert [("state_dir" in r.getMessage()) for r in caplog.records if "cannot be written" in r.getMessage()] == [True]


def test_where_no_log_may_be_read_both_remedies_are_said(tmp_path: Path) -> None:
    settings = {"kmsg_path": str(tmp_path / "none"), "journalctl": str(tmp_path / "journalctl"), "state_dir": str(tmp_path)}
    found = create(settings, Env(NodeRef("c1", "n1"), "boot-1", "0", 10**9)).probe()
    assert isinstance(found, Unavailable)
    assert found.reason.startswith("kernel: ")
    assert "mount it from the host" in found.reason
    assert "journalctl cannot be run" in found.reason


def test_the_journal_is_read_where_kmsg_may_not_be(tmp_path: Path) -> None:
    fake = FakeJournal(tmp_path)
    now = time.monotonic()
    fake.log(now, xid(79, FALLEN))
    settings = {"kmsg_path": str(tmp_path / "none"), "journalctl": str(fake.command), "state_dir": str(tmp_path)}
    plugin = create(settings, Env(NodeRef("c1", "n1"), "boot-1", "0", 10**9))
    assert plugin.probe() == Ready(())
    until = time.monotonic() + 20
    found: list[Any] = []
    while not found and time.monotonic() < until:
        found = list(plugin.read(FAST, time.monotonic() + 5).events)
        time.sleep(0.01)
    plugin.close()
    assert [e.code for e in found] == [79]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"xid_overrides": {13: {"severity": "critical", "action": "none"}}}, "xid_overrides.13: severity critical with action none"),
        ({"xid_overrides": {79: {"severity": "info"}}}, "xid_overrides.79: severity info with action reboot_node"),
        ({"xid_overrides": {13: {}}}, "nothing is overridden"),
        ({"xid_overrides": {13: {"klass": "x"}}}, "klass"),
        ({"xid_overrides": {"x": {"severity": "info"}}}, "xid_overrides"),
        ({"enable": ["none_such"]}, "enable: no rule none_such"),
        ({"cause_seconds": 400}, "cause_seconds 400 must not exceed together_seconds 300"),
        ({"source": "syslog"}, "source"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        create(settings, Env(NodeRef("c1", "n1"), "boot-1", "0", 10**9))


def test_the_site_overrides_a_number(machine: Machine) -> None:
    machine.settings = {"xid_overrides": {13: Override.model_validate({"severity": "info", "action": "check_application"})}}
    plugin = machine.start()
    machine.ring.log(1000, xid(13))
    assert [severity(e) for e in machine.events(plugin)] == ["info"]
