"""A host without room for another process: the plugin is tried again, the agent goes on."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from collectors import frames
from collectors.addresses import Addresses
from collectors.child import Child
from collectors.contract import NodeReading, Reading
from collectors.events import device_event
from collectors.outlet import Outlet, Shared
from collectors.patience import START_SECONDS
from collectors.publisher import Publisher
from collectors.stats import Tally
from collectors.supervised import MOST_STUCK, Limits, Supervised
from collectors.whereabouts import Place
from schemas import topics
from schemas.builder import SampleBuilder
from schemas.flow import Out
from schemas.identity import NodeRef
from schemas.telemetry import v1

NODE = NodeRef("c", "n")
ORDER = {"name": "fake", "target": "none", "settings": {}}


def refuse(*args: Any, **kwargs: Any) -> None:
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def test_a_process_that_cannot_be_started_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    outs: list[Out] = []
    shared = Shared(NODE, outs.extend, lambda: 10**9, Addresses(NODE))
    tally = Tally("fake")
    outlet = Outlet(tally, Publisher("fake", NODE, agent_epoch=1, interval_ns=10**9), shared)
    one = Supervised(ORDER, "retry", Limits(10.0, 1.0, 60.0), outlet, tally, releases=True)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert [one.start_if_due(at) for at in (0.0, 0.5, 1.0, 2.5)] == [False] * 4
    assert one.child is None
    assert not one.hangs(2.5)
    assert (tally.state, tally.restarts) == ("restarting", 2), "at 0 and 1 s; then not before 3 s"
    events = [v1.DeviceEvent.FromString(out.value or b"") for out in outs if out.topic == topics.DEVICE_EVENTS]
    assert [event.text for event in events] == [f"its process cannot be started: {os.strerror(errno.EAGAIN)}"] * 2


def test_and_leaves_no_file_descriptor_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", refuse)
    before = _lowest_free()
    for _ in range(5):
        with pytest.raises(OSError, match="temporarily"):
            Child(ORDER)
    assert _lowest_free() == before


def _lowest_free() -> int:
    descriptor = os.dup(2)
    os.close(descriptor)
    return descriptor


def test_what_a_process_says_after_it_was_asked_to_go_is_no_loss() -> None:
    """maintenance, never lost: the MIG manager may be at work on the cards while the last read ends."""
    outs: list[Out] = []
    shared = Shared(NODE, outs.extend, lambda: 10**9, Addresses(NODE))
    tally = Tally("fake")
    one = Supervised(
        ORDER,
        "fail",
        Limits(10.0, 1.0, 60.0),
        Outlet(tally, Publisher("fake", NODE, agent_epoch=1, interval_ns=10**9), shared),
        tally,
        releases=True,
    )
    lost = Reading(
        (NodeReading(1, (SampleBuilder("fake:0").absent("power_watts", "lost").build(),)),),
        (device_event(NODE, "fake", "lost", 1, "x", uid="fake:0"),),
    )
    child = Says(frames.up(1), frames.read(lost, duration_ns=1, skipped=0), frames.down("the driver is gone", 5.0), b"\0\0\0\0\0")
    one.child = child  # type: ignore[assignment]  # a process that says what it is given
    one.rest("MIG", 0.0, 10**9)
    assert [one.hear(0.1) for _ in range(4)] == [True, True, True, False]
    events = [v1.DeviceEvent.FromString(out.value or b"") for out in outs if out.topic == topics.DEVICE_EVENTS]
    assert [event.text for event in events] == ["the driver was let go on request (MIG)"]
    assert (tally.state, tally.restarts, tally.dropped, one.child) == ("maintenance", 0, {"maintenance": 2}, None)


class Says:
    """In place of collectors.child.Child."""

    fd = -1
    ended = False

    def __init__(self, *data: bytes) -> None:
        self._data, self._listener = list(data), frames.Listener()

    def hear(self) -> Iterator[frames.Word]:
        yield from self._listener.feed(self._data.pop(0))

    def end(self) -> None:
        pass

    kill = close = end

    def gone(self, wait_seconds: float = 0.0) -> bool:
        return True


class Stuck(Says):
    """Hangs in a call that SIGKILL does not end; `place` is what it was asked for."""

    dead = False

    def __init__(self, place: Place | None) -> None:
        super().__init__()
        self._place = place

    def place(self) -> Place | None:
        return self._place

    def gone(self, wait_seconds: float = 0.0) -> bool:
        return self.dead


@pytest.fixture
def one() -> Supervised:
    """One plugin; hang after 10 s, a new process after 1 s."""
    tally = Tally("fake")
    shared = Shared(NODE, lambda outs: None, lambda: 10**9, Addresses(NODE))
    outlet = Outlet(tally, Publisher("fake", NODE, agent_epoch=1, interval_ns=10**9), shared)
    return Supervised(ORDER, "retry", Limits(10.0, 1.0, 1.0), outlet, tally, releases=True)


def _start(one: Supervised, process: Stuck, at: float, monkeypatch: pytest.MonkeyPatch) -> dict[str, str] | None:
    """What the new process is to leave out; None where none is started."""
    asked: list[dict[str, str]] = []

    def start(order: dict[str, Any]) -> Stuck:
        asked.append(order["avoid"])
        return process

    monkeypatch.setattr("collectors.supervised.Child", start)
    return asked[0] if one.start_if_due(at) else None


def test_a_process_stuck_at_one_card_does_not_keep_the_others_from_being_read(one: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _start(one, Stuck(Place("3", "gpu-3")), 0.0, monkeypatch) == {}
    assert not one.hangs(5.0)
    assert one.hangs(15.0), "SIGKILL does not end it"
    assert _start(one, Stuck(None), 17.0, monkeypatch) == {"3": "gpu-3"}


def test_nor_does_a_try_begin_while_one_is_stuck_there(one: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Stuck(Place("3", "gpu-3"))
    tries: list[dict[str, str]] = []

    def try_it(order: dict[str, Any]) -> Stuck:
        tries.append(order["avoid"])
        return Stuck(Place("3"))

    _start(one, stuck, 0.0, monkeypatch)
    one.hangs(5.0)
    one.hangs(15.0)
    _start(one, Stuck(None), 17.0, monkeypatch)
    monkeypatch.setattr("collectors.trial.Child", try_it)
    assert not one.tries_again(1000.0)
    assert tries == []
    stuck.dead = True
    assert not one.tries_again(1001.0)
    assert tries == [{}]


def test_beside_one_stuck_at_who_knows_what_none_is_started(one: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Stuck(None)
    _start(one, stuck, 0.0, monkeypatch)
    assert one.hangs(START_SECONDS)
    assert _start(one, Stuck(None), START_SECONDS + 2, monkeypatch) is None
    stuck.dead = True
    assert _start(one, Stuck(None), START_SECONDS + 3, monkeypatch) == {}


def test_a_driver_that_hangs_at_everything_gets_few_processes_that_stick(one: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    started = 0
    for round_ in range(20):
        at = 20.0 * round_
        started += _start(one, Stuck(Place(str(round_))), at, monkeypatch) is not None
        one.hangs(at + 1)
        one.hangs(at + 12)
    assert started == MOST_STUCK + 1


def test_maintenance_ends_a_try_too(one: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Stuck(Place("3"))
    first.dead = True
    _start(one, first, 0.0, monkeypatch)
    one.hangs(5.0)
    one.hangs(15.0)
    _start(one, Stuck(None), 17.0, monkeypatch)
    monkeypatch.setattr("collectors.trial.Child", lambda order: Stuck(Place("3")))
    one.tries_again(100.0)
    assert len(one.children()) == 2
    one.rest("MIG", 101.0, 10**9)
    assert len(one.children()) == 1, "that one closes its driver first"


class Quick(Stuck):
    """A try that ends at once."""

    dead = True

    def __init__(self, *, well: bool) -> None:
        super().__init__(None)
        self._well = well

    def ended_well(self) -> bool:
        return self._well


def _left_out(one: Supervised, keys: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """A plugin that runs and leaves out so many; the time it is then."""
    at = 0.0
    for key in keys:
        hung = Stuck(Place(key))
        hung.dead = True
        _start(one, hung, at, monkeypatch)
        one.hangs(at + 1.0)
        assert one.hangs(at + 12.0)
        at += 20.0
    running = Stuck(None)
    running.dead = True
    _start(one, running, at, monkeypatch)
    return at


def test_where_one_answers_again_the_others_are_tried_before_it_starts_anew(one: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    at = _left_out(one, "35", monkeypatch)
    tries: list[dict[str, str]] = []

    def try_it(order: dict[str, Any]) -> Quick:
        tries.append(order["avoid"])
        return Quick(well=True)

    monkeypatch.setattr("collectors.trial.Child", try_it)
    at = max(at, 73.0)
    assert [one.tries_again(at + step) for step in (0.0, 0.2, 0.4)] == [False, False, True]
    assert tries == [{"5": ""}, {}]
    assert _start(one, Stuck(None), at + 1.0, monkeypatch) == {}, "once for both"


def test_what_still_hangs_does_not_keep_the_other_from_coming_back(one: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    at = max(_left_out(one, "35", monkeypatch), 73.0)
    outcomes = iter((True, False))
    monkeypatch.setattr("collectors.trial.Child", lambda order: Quick(well=next(outcomes)))
    assert [one.tries_again(at + step) for step in (0.0, 0.2, 0.4)] == [False, False, True]
    assert _start(one, Stuck(None), at + 1.0, monkeypatch) == {"5": ""}


def test_after_a_maintenance_everything_is_read_again(one: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reset of the GPU is what heals one that hangs, and it needs the driver let go."""
    at = _left_out(one, "3", monkeypatch)
    one.rest("reset", at + 1.0, 10**9)
    assert one.hangs(at + 4.0), "it did not go by itself"
    one.rest("", at + 60.0, 10**9)
    assert _start(one, Stuck(None), at + 60.0, monkeypatch) == {}
