"""The kernel plugin in its own process, as the agent runs it: a storm while the process is killed, and again after it."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.child import Child
from collectors.frames import Read
from schemas.telemetry import v1
from tests.fakes.kernel_log import FakeJournal
from tests.unit.collectors.nvidia.xid.given import newest, xid

pytestmark = pytest.mark.integration

LINES = 3000
SYMPTOM = "NVRM: Xid (PCI:0000:3b:00): 45, pid=77, name=train, Ch {:08x}"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Child]]:
    (tmp_path / "journal").mkdir()
    children: list[Child] = []
    order: dict[str, Any] = {
        "name": "kernel",
        "target": "collectors.kernel.plugin:create",
        "settings": {"source": "journald", "journalctl": str(tmp_path / "journal" / "journalctl"), "state_dir": str(tmp_path / "state")}
        | {"update_seconds": 1, "hold_seconds": 0.2},
        "node": ["c1", "n1"],
        "boot_id": "boot-1",
        "agent_version": "0",
        "interval_ns": 50_000_000,
        "slow_every": 1000,
        "read_deadline_seconds": 5.0,
        "alive_seconds": 1.0,
    }

    def make() -> Child:
        children.append(Child(order))
        return children[-1]

    yield make
    for child in children:
        child.kill()
        child.gone(5)
        child.close()


def hear(child: Child, enough: Callable[[list[v1.DeviceEvent]], bool]) -> list[v1.DeviceEvent]:
    found: list[v1.DeviceEvent] = []
    until = time.monotonic() + 60
    while not enough(found) and time.monotonic() < until:
        select.select([child.fd], [], [], 0.2)
        for word in child.hear():
            if isinstance(word, Read):
                found += [event for event in word.reading.events if isinstance(event, v1.DeviceEvent)]
    assert enough(found), found
    return found


def test_a_storm_is_one_event_although_its_reader_is_killed_twice(tmp_path: Path, start: Callable[[], Child]) -> None:
    events: list[v1.DeviceEvent] = []
    journal = FakeJournal(tmp_path / "journal")
    begin = time.monotonic()
    journal.log(begin, xid(149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000)"))
    for round_ in range(3):
        for i in range(LINES // 3):
            journal.log(begin + round_ + i / LINES, SYMPTOM.format(i))
        child = start()
        wanted = (round_ + 1) * LINES // 3
        events += hear(child, lambda found, wanted=wanted: any(e.code == 45 and e.count == wanted for e in found))  # type: ignore[misc]  # a default binds the round's number
        child.kill()
        assert child.gone(5)
    cause, symptom = sorted(newest(events), key=lambda event: -event.code)
    assert (cause.code, cause.count, symptom.code, symptom.count) == (149, 1, 45, LINES)
    assert symptom.caused_by == cause.id
