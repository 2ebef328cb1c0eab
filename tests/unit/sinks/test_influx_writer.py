"""The response table: what each answer of the server does to the points (streams.md §3.2), over a real HTTP connection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from schemas.flow import Busy
from sinks.influxdb.answer import read_answer
from sinks.influxdb.http import HttpDoor, Target
from sinks.influxdb.writer import InfluxWriter
from sinks.points import Point
from tests.fakes.influx_http import OK, FakeInflux, Reply, serving

CONFLICT: Reply = (422, {}, '{"code":"unprocessable entity","message":"partial write: field type conflict dropped=1"}')


def points(count: int) -> list[Point]:
    """Points with seq 0, 1, 2 …"""
    return [Point("usage", ("c", "n", "u", "", ""), {"seq": i}, 100 + i) for i in range(count)]


@contextmanager
def writing(rule: Callable[[list[str]], Reply], batch_lines: int = 5000) -> Iterator[tuple[InfluxWriter, FakeInflux]]:
    """A writer to a server with a rule."""
    with serving(FakeInflux(rule)) as fake:
        target = Target(fake.url, "my org", "b&c", "s3cret", 1, 2.0, True, "")
        writer = InfluxWriter(HttpDoor(target), where=fake.url, batch_lines=batch_lines, jitter=lambda: 0.0)
        yield writer, fake
        writer.close()


def bad(*numbers: int, reply: Reply = CONFLICT) -> Callable[[list[str]], Reply]:
    """A rule that refuses any batch with one of these lines."""
    words = {f"seq={n}i" for n in numbers}
    return lambda lines: reply if any(line.split(" ")[1] in words for line in lines) else OK


def test_points_arrive_gzipped_with_token_and_precision() -> None:
    with writing(lambda lines: OK, batch_lines=3) as (writer, fake):
        assert writer.write(points(7)) == []

    assert [len(r.lines) for r in fake.requests] == [3, 3, 1]
    assert fake.stored == [f"usage,cluster=c,node=n,uid=u seq={i}i {100 + i}" for i in range(7)]
    assert fake.requests[0].path == "/api/v2/write?org=my+org&bucket=b%26c&precision=ns"
    assert fake.requests[0].headers["Authorization"] == "Token s3cret"
    assert fake.requests[0].headers["Content-Encoding"] == "gzip"
    assert writer.written_total == 7


@pytest.mark.parametrize("status", [400, 422])
def test_bad_lines_are_isolated_and_all_others_stored(status: int) -> None:
    with writing(bad(0, 5, 99, reply=(status, {}, '{"message":"no good"}'))) as (writer, fake):
        rejected = writer.write(points(100))

    assert [r.position for r in rejected] == [0, 5, 99]
    assert rejected[0].reason == f"InfluxDB {status}: no good"
    assert len(set(fake.stored)) == 97


@pytest.mark.parametrize(
    "text", ["points beyond retention policy dropped=4", "dropped 4 points outside retention policy of duration 168h0m0s - oldest point …"]
)
def test_points_outside_the_retention_are_counted_and_not_refused(text: str) -> None:
    old: Reply = (422, {}, json.dumps({"message": f"failure writing points to database: partial write: {text}"}))
    with writing(lambda lines: old) as (writer, fake):
        assert writer.write(points(10)) == []

    assert len(fake.requests) == 1
    assert writer.dropped == {"outside_retention": 4}
    assert writer.written_total == 6


def test_too_large_is_halved_until_it_fits() -> None:
    with writing(lambda lines: (413, {}, "") if len(lines) > 3 else OK) as (writer, fake):
        assert writer.write(points(10)) == []
    assert len(fake.stored) == 10


def test_one_line_that_is_too_large_is_refused() -> None:
    with writing(bad(1, reply=(413, {}, "big"))) as (writer, fake):
        (rejected,) = writer.write(points(2))
    assert rejected.position == 1
    assert "413: big" in rejected.reason
    assert len(fake.stored) == 1


@pytest.mark.parametrize("status", [301, 401, 403, 404, 405])
def test_what_somebody_must_set_right_drops_nothing(status: int) -> None:
    with writing(lambda lines: (status, {"Location": "/elsewhere"}, '{"message":"no"}')) as (writer, fake), pytest.raises(Busy) as busy:
        writer.write(points(3))
    assert len(fake.requests) == 1
    assert f"{status}: no" in busy.value.reason
    assert "--setup" in busy.value.reason
    assert "s3cret" not in busy.value.reason


@pytest.mark.parametrize(
    ("status", "header", "seconds"), [(429, "17", 17), (503, "0", 1), (503, "99999", 300), (503, "soon", 1), (502, None, 1), (504, None, 1)]
)
def test_overload_waits_as_asked_but_at_least_a_second(status: int, header: str | None, seconds: float) -> None:
    headers = {} if header is None else {"Retry-After": header}
    with writing(lambda lines: (status, headers, "")) as (writer, _), pytest.raises(Busy) as busy:
        writer.write(points(1))
    assert busy.value.retry_after_seconds == seconds


def test_a_date_in_retry_after_is_understood() -> None:
    answer = read_answer(503, {"Retry-After": "Thu, 01 Jan 1970 00:01:00 GMT"}, b"", 20.0)
    assert answer.retry_after_seconds == 40


def test_waits_grow_while_the_server_stays_away_and_start_anew_after() -> None:
    replies = [(503, {}, ""), (503, {}, ""), (503, {}, ""), OK, (503, {}, "")]
    waits = []
    with writing(lambda lines: replies.pop(0)) as (writer, _):
        for _ in range(5):
            try:
                writer.write(points(1))
            except Busy as busy:
                waits.append(busy.retry_after_seconds)
    assert waits == [1, 2, 4, 1]


def test_no_answer_sends_the_same_bytes_again() -> None:
    replies = [(0, {}, ""), OK]
    with writing(lambda lines: replies.pop(0)) as (writer, fake):
        with pytest.raises(Busy):
            writer.write(points(2))
        assert writer.write(points(2)) == []
    assert fake.requests[0].lines == fake.requests[1].lines


def test_a_server_that_is_not_there_is_busy() -> None:
    target = Target("http://127.0.0.1:1", "o", "b", "", 1, 1.0, True, "")
    with pytest.raises(Busy, match="same points are sent again"):
        InfluxWriter(HttpDoor(target), where="there", batch_lines=10).write(points(1))


def test_a_line_that_an_old_server_answers_by_500_is_found_after_three_tries() -> None:
    with writing(bad(3, reply=(500, {}, "internal"))) as (writer, fake):
        for _ in range(3):
            with pytest.raises(Busy):
                writer.write(points(8))
        (rejected,) = writer.write(points(8))
    assert rejected.position == 3
    assert len(set(fake.stored)) == 7


def test_a_server_that_answers_everything_by_500_loses_nothing() -> None:
    with writing(lambda lines: (500, {}, "disk full")) as (writer, fake):
        for _ in range(6):
            with pytest.raises(Busy):
                writer.write(points(200))
    assert fake.stored == []
    assert len(fake.requests) < 3 + 3 * 40


def test_points_without_a_finite_field_send_no_request() -> None:
    with writing(lambda lines: OK) as (writer, fake):
        assert writer.write([Point("usage", ("c", "n", "u", "", ""), {"power_watts": float("nan")}, 1)]) == []
    assert fake.requests == []
    assert writer.dropped == {"no_field_left": 1, "field_not_finite": 1}
