"""The watchdog fires only with work, a broker and no progress; rejects stop a role only when they are most of a thousand."""

from __future__ import annotations

import threading

import pytest

from xpulse.bus.rejects import RejectWindow, TooManyRejected
from xpulse.bus.watchdog import Watchdog, reachable


@pytest.mark.parametrize(("work", "broker", "fired"), [(True, True, True), (False, True, False), (True, False, False)])
def test_fires_with_work_and_broker_only(work: bool, broker: bool, fired: bool) -> None:
    stuck = threading.Event()
    with Watchdog(lambda: work, lambda: broker, on_stuck=stuck.set, limit_seconds=0.12):
        assert stuck.wait(0.5) is fired


def test_progress_keeps_it_quiet() -> None:
    stuck, done = threading.Event(), threading.Event()
    with Watchdog(lambda: True, lambda: True, on_stuck=stuck.set, limit_seconds=0.6) as watchdog:
        for _ in range(20):
            watchdog.beat()
            done.wait(0.05)
    assert not stuck.is_set()


def test_a_closed_port_is_not_reachable() -> None:
    assert not reachable("127.0.0.1:1,nonsense", 0.2)


def test_half_of_a_thousand_is_bearable_more_is_not() -> None:
    window = RejectWindow()
    window.note("detect", 500, 0, "")
    window.note("detect", 500, 500, "major 9")
    with pytest.raises(TooManyRejected, match="501 of the last 1001"):
        window.note("detect", 1, 1, "major 9")


def test_old_batches_are_forgotten() -> None:
    window = RejectWindow()
    window.note("detect", 400, 400, "r")
    for _ in range(4):
        window.note("detect", 500, 100, "r")
