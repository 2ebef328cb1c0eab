"""The storm that flagged healthy nodes elsewhere (NVSentinel#1629), in full: 168,924 lines of Xid 45 in a minute, at flat memory."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from collectors.contract import Env
from collectors.kernel.kmsg import Kmsg
from collectors.kernel.plugin import Plugin
from collectors.kernel.settings import Kernel
from schemas.catalogue import Cadence
from schemas.identity import NodeRef
from schemas.telemetry import v1

pytestmark = pytest.mark.integration

LINES = 168_924
SECONDS = 60
FAST: frozenset[Cadence] = frozenset({"fast"})
MOST_GROWTH_KIB = 16 * 1024
BOOTED_NS = 1_790_000_000_000_000_000


class Flood:
    """Makes each record when it is asked for: a ring in memory would be what grows."""

    def __init__(self) -> None:
        self.made = self.due = 0

    def read(self, fd: int, size: int) -> bytes:
        if self.made >= self.due:
            raise BlockingIOError
        i = self.made
        self.made += 1
        at_us = 1_000_000_000 + i * SECONDS * 1_000_000 // LINES
        if i == 0:
            return b"3,0,1000000000,-;NVRM: Xid (PCI:0000:06:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000)\n"
        return f"3,{i},{at_us},-;NVRM: Xid (PCI:0000:06:00): 45, pid={5000 + i % 7}, name=train.py, Ch {i:08x}\n".encode()


def test_a_storm_is_one_event_at_flat_memory(tmp_path: Path) -> None:
    flood, seconds = Flood(), 1000.0

    def now_ns() -> int:
        return round(seconds * 1e9)

    plugin = Plugin(
        Kernel(state_dir=tmp_path),
        Env(NodeRef("c1", "n1"), "boot-1", "0", 10**9),
        sources=(Kmsg(Path(os.devnull), flood.read),),
        wall=lambda: BOOTED_NS + now_ns(),
        monotonic=now_ns,
    )
    plugin.probe()
    events: list[v1.DeviceEvent] = []
    early = 0
    for second in range(SECONDS + 20):
        seconds = 1001.0 + second
        flood.due = min(LINES + 1, (second + 1) * (LINES + 1) // SECONDS)
        events += [e for e in plugin.read(FAST, time.monotonic() + 60).events if isinstance(e, v1.DeviceEvent)]
        if second == 5:
            early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plugin.close()
    newest = {event.id: event for event in events}
    assert [(event.code, event.count) for event in newest.values()] == [(149, 1), (45, LINES)]
    assert all(event.caused_by == events[0].id for event in events[1:])
    assert len(events) <= 2 + SECONDS // 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early < MOST_GROWTH_KIB
