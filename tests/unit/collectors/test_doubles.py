"""One Xid is one event, whoever tells it first."""

from __future__ import annotations

from collectors.doubles import WAIT_NS, Doubles
from collectors.events import device_event
from schemas.identity import NodeRef
from schemas.telemetry import v1

S = 10**9
NODE = NodeRef("c", "n")


def xid(source: str, at: int, code: int = 79, uid: str = "nvidia:GPU-1", last: int | None = None) -> v1.DeviceEvent:
    event = device_event(NODE, source, "xid", at * S, "x", uid=uid, code=code)
    if last is not None:
        event.first_at_ns, event.last_at_ns = at * S, last * S
    return event


def test_the_line_wins_whichever_comes_first() -> None:
    for first, second in (("kernel", "nvidia"), ("nvidia", "kernel")):
        doubles = Doubles()
        passed = doubles.sift(first, [xid(first, 100)], 100 * S) + doubles.sift(second, [xid(second, 101)], 101 * S)
        passed += doubles.due(100 * S + 2 * WAIT_NS)
        assert [event.source for event in passed] == ["kernel"]
        assert doubles.dropped == 1


def test_without_a_line_it_goes_on_after_the_wait() -> None:
    doubles = Doubles()
    assert doubles.sift("nvidia", [xid("nvidia", 100)], 100 * S) == []
    assert doubles.due(100 * S + WAIT_NS - 1) == []
    assert [event.source for event in doubles.due(100 * S + WAIT_NS)] == ["nvidia"]
    assert doubles.due(100 * S + 3 * WAIT_NS) == []


def test_where_nobody_reads_the_log_nothing_is_waited_for() -> None:
    doubles = Doubles()
    doubles.expected = False
    doubles.sift("nvidia", [xid("nvidia", 100)], 100 * S)
    assert [event.source for event in doubles.due(100 * S)] == ["nvidia"]


def test_another_code_another_card_and_another_time_are_other_errors() -> None:
    doubles = Doubles()
    doubles.sift("kernel", [xid("kernel", 100)], 100 * S)
    others = [xid("nvidia", 100, code=48), xid("nvidia", 100, uid="nvidia:GPU-2"), xid("nvidia", 300)]
    doubles.sift("nvidia", others, 300 * S)
    assert len(doubles.due(300 * S + WAIT_NS)) == 3


def test_a_storm_that_the_line_counts_covers_all_that_nvml_tells_of_it() -> None:
    doubles = Doubles()
    doubles.sift("kernel", [xid("kernel", 100, code=45, last=102)], 102 * S)
    doubles.sift("kernel", [xid("kernel", 100, code=45, last=140)], 140 * S)
    doubles.sift("nvidia", [xid("nvidia", at, code=45) for at in range(100, 144)], 144 * S)
    assert doubles.due(144 * S + WAIT_NS) == []


def test_a_kernel_whose_clock_is_minutes_off_doubles_nothing() -> None:
    """The kernel's stamps run free of NTP: after months they are minutes from the wall clock that NVML's events are stamped with."""
    for behind in (-400, 400):
        doubles = Doubles()
        doubles.sift("nvidia", [xid("nvidia", 1000)], 1000 * S)
        doubles.sift("kernel", [xid("kernel", 1000 - behind)], 1001 * S)
        doubles.sift("nvidia", [xid("nvidia", 1002)], 1002 * S)
        assert doubles.due(1000 * S + 2 * WAIT_NS) == []


def test_a_line_of_the_past_covers_nothing_that_happens_now() -> None:
    doubles = Doubles()
    old = xid("kernel", 100)
    old.details["backlog"] = "true"
    doubles.sift("kernel", [old], 1000 * S)
    doubles.sift("nvidia", [xid("nvidia", 1000)], 1000 * S)
    assert len(doubles.due(1000 * S + WAIT_NS)) == 1


def test_an_agent_that_reads_each_minute_waits_for_the_next_reading_of_the_log() -> None:
    doubles = Doubles(interval_ns=60 * S)
    doubles.sift("nvidia", [xid("nvidia", 100, code=45)], 100 * S)
    assert doubles.due(159 * S) == []
    doubles.sift("kernel", [xid("kernel", 100, code=45)], 160 * S)  # a symptom that waited for its cause
    assert doubles.due(1000 * S) == []


def test_other_kinds_and_events_without_a_card_pass_at_once() -> None:
    doubles = Doubles()
    lost = device_event(NODE, "nvidia", "lost", 1, "gone", uid="nvidia:GPU-1")
    assert doubles.sift("nvidia", [lost, xid("nvidia", 1, uid="")], 1) != []
    assert doubles.due(1 + 2 * WAIT_NS) == []


def test_the_end_of_the_agent_lets_go_what_is_held_and_is_no_double() -> None:
    doubles = Doubles()
    doubles.sift("nvidia", [xid("nvidia", 100), xid("nvidia", 100, code=48)], 100 * S)
    doubles.sift("kernel", [xid("kernel", 100)], 100 * S)
    assert [event.code for event in doubles.flush()] == [48]
