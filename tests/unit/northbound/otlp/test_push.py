"""The push: what is due when, back-off, order after an outage, counts of everything that is not delivered, and a bounded end."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from schemas.device_state import DeviceState, FleetState
from schemas.identity import NodeRef
from schemas.otlp import Origin
from schemas.telemetry import v1
from xpulse.northbound.otlp.outcome import Later, Outcome, Refused, Taken
from xpulse.northbound.otlp.push import Push
from xpulse.northbound.otlp.settings import Otlp
from xpulse.northbound.otlp.waiting import Packed

NODE = NodeRef("c", "n")
S = 10**9
POINTS = 6
"""Of the state below: power, the four of hw.status, info."""


class Endpoint:
    """Answers what it was told to, then takes everything."""

    def __init__(self, *answers: Outcome) -> None:
        self.answers = list(answers)
        self.seen: list[float] = []
        self.timeouts: list[float] = []
        self.closed = False

    def send(self, packed: Packed, timeout_seconds: float) -> Outcome:
        self.timeouts.append(timeout_seconds)
        outcome = self.answers.pop(0) if self.answers else Taken()
        if isinstance(outcome, Taken):
            message = ExportMetricsServiceRequest.FromString(packed.message())
            by_name = {m.name: m for m in message.resource_metrics[0].scope_metrics[0].metrics}
            self.seen.append(by_name["hw.power"].gauge.data_points[0].as_double)
        return outcome

    def close(self) -> None:
        self.closed = True


class Bench:
    """A push whose time is a number."""

    def __init__(self, *answers: Outcome, queue_bytes: int = 1 << 20, jitter: float = 1.0, interval: float = 10) -> None:
        self.now = 0.0
        self.endpoint = Endpoint(*answers)
        settings = Otlp(interval_seconds=interval, retry_min_seconds=1, retry_max_seconds=30, queue_bytes=queue_bytes)
        origin = Origin(NODE, "1", "i", 0)
        self.push = Push(
            settings,
            origin,
            self.state,
            self.endpoint,
            clock=lambda: round(self.now * S),
            monotonic=lambda: self.now,
            jitter=lambda: jitter,
        )

    def state(self, at_ns: int) -> FleetState:
        info = v1.DeviceInfo()
        return FleetState(at_ns, (DeviceState(NODE, "nvidia", "nvidia:0", 0, info, at_ns, 0, {"power_watts": self.now}),))

    def at(self, now: float) -> float:
        self.now = now
        return self.push.turn()


def test_a_state_is_sent_every_interval() -> None:
    bench = Bench()
    assert bench.at(0) == 10
    assert bench.at(10) == 10
    assert bench.at(15) == 5
    bench.at(20)
    totals = bench.push.totals()
    assert bench.endpoint.seen == [10.0, 20.0]
    assert (totals.sent, totals.waiting_points, totals.last_success_ns, totals.trouble) == (2 * POINTS, 0, 20 * S, "")
    assert (totals.failed, totals.dropped, totals.retries) == ({}, {}, {})


def test_a_late_turn_does_not_make_two_states() -> None:
    bench = Bench()
    assert bench.at(35) == 10
    assert bench.endpoint.seen == [35.0]


def test_an_endpoint_that_is_away_gets_everything_in_order_after_growing_pauses() -> None:
    away = Later("unavailable", "refused")
    bench = Bench(away, away, away, away)
    assert bench.at(10) == 1
    assert bench.at(11) == 2
    assert bench.at(13) == 4
    assert bench.at(17) == 3  # in 8 s again; a state is due before
    bench.at(20)
    assert bench.push.totals().trouble == "unavailable: refused"
    assert bench.push.totals().waiting_points == 2 * POINTS
    bench.at(25)
    bench.at(25)
    totals = bench.push.totals()
    assert bench.endpoint.seen == [10.0, 20.0]
    assert (totals.sent, totals.waiting_points, totals.trouble, totals.retries) == (2 * POINTS, 0, "", {"unavailable": 4})


def test_the_pause_has_a_longest_and_jitter_takes_half_of_it_at_most() -> None:
    bench = Bench(*[Later("unavailable")] * 20, jitter=0.0, interval=1000)
    waits = [bench.at(1000)]
    for _ in range(8):
        waits.append(bench.at(bench.now + waits[-1]))
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0, 15.0]


@pytest.mark.parametrize(("wish", "wait"), [(7.0, 7.0), (0.0, 1.0), (900.0, 30.0)], ids=["as wished", "at least the first", "bounded"])
def test_the_endpoints_wish_is_obeyed(wish: float, wait: float) -> None:
    assert Bench(Later("http_429", "", wish), interval=1000).at(1000) == wait


def test_a_full_queue_loses_the_oldest_and_counts_its_points() -> None:
    bench = Bench(*[Later("unavailable")] * 1000, queue_bytes=64 * 1024)
    for turn in range(1, 400):
        bench.push.collect()
        bench.now = float(turn)
    totals = bench.push.totals()
    assert totals.waiting_bytes <= 64 * 1024
    assert totals.dropped["queue_full"] > 0
    assert totals.dropped["queue_full"] + totals.waiting_points == 399 * POINTS


def test_what_is_refused_is_counted_by_reason_and_what_follows_is_sent() -> None:
    bench = Bench(Refused("http_400", "bad"), Taken(2, "too old"))
    bench.at(10)
    assert bench.push.totals().trouble == "http_400: bad"
    bench.at(20)
    totals = bench.push.totals()
    assert totals.failed == {"http_400": POINTS, "partial": 2}
    assert (totals.sent, totals.trouble) == (POINTS - 2, "")


def test_an_endpoint_cannot_make_counts_negative() -> None:
    bench = Bench(Taken(10**9))
    bench.at(10)
    assert (bench.push.totals().sent, bench.push.totals().failed) == (0, {"partial": POINTS})


def test_trouble_is_said_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(*[Later("unavailable", "refused")] * 3, Taken(1, "old"), Taken(1, "old"))
    with caplog.at_level(logging.INFO, "xpulse.northbound.otlp.push"):
        for now in (10.0, 11.0, 13.0, 17.0, 20.0):
            bench.at(now)
    assert [record.getMessage() for record in caplog.records] == [
        "the otlp endpoint does not take metrics; they wait",
        "the otlp endpoint takes metrics again",
        "the otlp endpoint refused points",
    ]


def test_an_end_sends_what_is_known_within_its_time() -> None:
    bench = Bench()
    push = bench.push
    push.start()
    push.close(2.0)
    assert bench.endpoint.seen == [0.0]
    assert bench.endpoint.timeouts == [2.0]
    assert bench.endpoint.closed
    assert push.totals().dropped == {"shutdown": 0}


def test_an_end_without_an_endpoint_counts_what_is_left() -> None:
    bench = Bench(*[Later("unavailable", "refused")] * 9)
    bench.at(10)
    bench.push.start()
    bench.push.close(2.0)
    assert bench.push.totals().dropped == {"shutdown": 2 * POINTS}


class Stuck:
    """An endpoint that never answers."""

    def __init__(self) -> None:
        self.asked, self.release = threading.Event(), threading.Event()

    def send(self, packed: Packed, timeout_seconds: float) -> Outcome:
        self.asked.set()
        self.release.wait(30)
        return Later("timeout")

    def close(self) -> None:
        self.release.set()


def test_an_end_does_not_wait_for_an_endpoint_that_never_answers() -> None:
    stuck = Stuck()
    bench = Bench()
    push = Push(Otlp(interval_seconds=1), Origin(NODE, "1", "i", 0), bench.state, stuck, monotonic=Clock())
    push.start()
    assert stuck.asked.wait(10)
    push.close(0.05)
    assert push.totals().dropped["shutdown"] >= POINTS


class Clock:
    """Real time, an hour ahead after the first look: everything is due at once."""

    def __init__(self) -> None:
        self._looks = 0

    def __call__(self) -> float:
        self._looks += 1
        return time.monotonic() + (3600 if self._looks > 1 else 0)


def test_a_defect_of_ours_does_not_end_the_push(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()

    def fail() -> float:
        raise ZeroDivisionError

    assert bench.push._guarded(fail) == 30.0
    assert "it goes on" in caplog.text
