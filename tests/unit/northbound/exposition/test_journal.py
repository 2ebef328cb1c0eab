"""The journal tells what the latest state does not: the last Xid, Xids of five minutes, rates, and events of devices that are gone."""

from __future__ import annotations

from collectors.contract import NodeReading, Reading
from collectors.events import device_event
from schemas.builder import SampleBuilder
from schemas.dcgm_names import NONE, Trail
from schemas.identity import NodeRef
from schemas.telemetry import v1
from xpulse.northbound.exposition.journal import Journal

NODE = NodeRef("c", "n")
UID = "nvidia:GPU-1"
KEY = (NODE, UID)
S = 10**9


def xid(code: int, at: int, *, count: int = 0, id: str = "", uid: str = UID) -> v1.DeviceEvent:
    event = device_event(NODE, "kernel", "xid", at * S, f"Xid {code}", uid=uid, code=code)
    event.mnemonic, event.count, event.id = f"M{code}", count, id or event.id
    return event


def told(*events: v1.DeviceEvent, at: int) -> Trail:
    journal = Journal(NODE)
    for event in events:
        journal.happened(event)
    return journal.trails(at * S)[KEY]


def read(at: int, sent: int, uid: str = UID) -> Reading:
    return Reading((NodeReading(at * S, (SampleBuilder(uid, 0).set("pcie_tx_bytes", sent).build(),)),))


# peers.md D73: dcgm-exporter#500/#190: the same code twice is invisible in the gauge; the count shows it.
def test_the_same_xid_twice() -> None:
    trail = told(xid(79, 100), xid(79, 200), at=210)
    assert (trail.last_xid, trail.last_xid_text, trail.xids) == (79, "M79", {79: 2})


# peers.md D73: DCGM#235: 62 in the kernel log is replaced by the 45 that follows it; the count keeps both.
def test_a_later_one_is_the_last_and_the_earlier_one_is_still_counted() -> None:
    trail = told(xid(62, 100), xid(45, 101), at=110)
    assert trail.last_xid == 45
    assert trail.xids == {62: 1, 45: 1}


def test_an_event_heard_late_is_not_the_last_one() -> None:
    assert told(xid(45, 200), xid(62, 100), at=210).last_xid == 45


# peers.md D74/E: 168,924 lines of Xid 45 are one event whose count grows; its versions are not added up.
def test_versions_of_one_event_count_what_they_add() -> None:
    trail = told(xid(45, 100, count=5, id="x"), xid(45, 100, count=168_924, id="x"), xid(45, 100, count=168_924, id="x"), at=110)
    assert trail.xids == {45: 168_924}


# peers.md D76: gpud#1287: windows aligned to the clock split 12:34:58 | 12:35:00.
def test_the_window_slides() -> None:
    events = (xid(13, 298), xid(13, 300))
    assert told(*events, at=302).xids == {13: 2}
    assert told(*events, at=599).xids == {13: 1}
    assert told(*events, at=601).xids == {}
    assert told(*events, at=601).last_xid == 13


def test_a_storm_of_events_is_kept_small() -> None:
    journal = Journal(NODE)
    for n in range(10_000):
        journal.happened(xid(45, 100 + n // 1000, id=str(n)))
    xids = journal._devices[KEY].xids
    assert xids is not None
    assert len(xids.seen) <= 10
    assert journal.trails(120 * S)[KEY].xids == {45: 10_000}


def test_rates_are_of_the_last_two_readings() -> None:
    journal = Journal(NODE)
    journal.observe("nvidia", read(100, 1000))
    assert journal.trails(100 * S)[KEY] == NONE
    journal.observe("nvidia", read(102, 5000))
    assert journal.trails(102 * S)[KEY].rates == {"pcie_tx_bytes": 2000.0}
    journal.observe("nvidia", read(103, 5000))
    assert journal.trails(103 * S)[KEY].rates == {"pcie_tx_bytes": 0.0}


def test_a_counter_that_began_anew_has_no_rate_until_the_next_reading() -> None:
    journal = Journal(NODE)
    for at, sent in ((100, 9000), (101, 9500), (102, 10)):
        journal.observe("nvidia", read(at, sent))
    assert journal.trails(102 * S)[KEY].rates == {}
    journal.observe("nvidia", read(103, 30))
    assert journal.trails(103 * S)[KEY].rates == {"pcie_tx_bytes": 20.0}


def test_another_sources_counters_are_not_mixed_in() -> None:
    journal = Journal(NODE)
    journal.observe("nvidia", read(100, 1000))
    journal.observe("dcgm", read(101, 7_000_000))
    journal.observe("nvidia", read(102, 1200))
    assert journal.trails(102 * S)[KEY].rates == {"pcie_tx_bytes": 100.0}


def test_a_rate_of_long_ago_is_none() -> None:
    journal = Journal(NODE)
    journal.observe("nvidia", read(100, 1000))
    journal.observe("nvidia", read(101, 2000))
    assert journal.trails(402 * S)[KEY].rates == {}


def test_what_is_gone_is_forgotten() -> None:
    journal = Journal(NODE)
    for n in range(100):  # MIG instances get a new uid each time they are made
        journal.observe("nvidia", read(100 + n, 1, uid=f"nvidia:MIG-{n}"))
    assert len(journal.trails(200 * S)) == 100
    assert journal.trails(800 * S) == {}


def test_events_of_a_node_are_counted_with_those_of_devices_that_are_gone() -> None:
    journal = Journal(NODE)
    journal.happened(device_event(NODE, "nvidia", "lost", 100 * S, "gone", uid="nvidia:GPU-9"))
    journal.happened(device_event(NODE, "nvidia", "hang", 100 * S, "no answer"))
    assert journal.events() == {("c", "n", "lost"): 1, ("c", "n", "hang"): 1}


def test_devices_that_come_and_go_are_forgotten_though_nobody_asks() -> None:
    journal = Journal(NODE)
    for hour in range(300):
        samples = tuple(SampleBuilder(f"nvidia:MIG-{hour}-{n}", n).set("energy_joules", 1.0).build() for n in range(14))
        journal.observe("nvidia", Reading((NodeReading((1 + hour) * 3600 * 10**9, samples),)))
    assert len(journal.trails(301 * 3600 * 10**9)) < 1100
    assert len(journal._devices) < 1100
