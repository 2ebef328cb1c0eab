"""The InfluxDB sink against a real server: what it refuses, what it drops, what its token may do."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from schemas.flow import Busy
from sinks.influxdb.http import HttpDoor, Target
from sinks.influxdb.setup import SetupRefused, setup
from sinks.influxdb.store import InfluxStore
from sinks.influxdb.writer import InfluxWriter
from sinks.points import Point
from tests.integration.servers.influxdb import InfluxServer

pytestmark = pytest.mark.integration
WEEK_SECONDS = 7 * 86_400
NASTY = ["a,b", "a b", "a=b", 'a"b', "a\\b", "a\\", "a\\,b", "a\\\\", "a\\=", "\\ ", "ö", "a\nb", "'", "#", "${r}", '"} or {r', "\\\\ "]


@pytest.fixture
def target(influx_server: InfluxServer) -> Target:
    """A fresh bucket that keeps a week, with its own token."""
    wanted = Target(influx_server.url, influx_server.org, f"sinks-{secrets.token_hex(4)}", "", 1, 30.0, True, "")
    return replace(wanted, token=setup(wanted, influx_server.token, retention_seconds=WEEK_SECONDS).token)


@pytest.fixture
def writer(target: Target) -> Iterator[InfluxWriter]:
    """A writer to it."""
    found = InfluxWriter(HttpDoor(target), where=target.bucket, batch_lines=5000, jitter=lambda: 0.0)
    yield found
    found.close()


@pytest.fixture
def store(target: Target) -> Iterator[InfluxStore]:
    """A reader of it."""
    found = InfluxStore(target)
    yield found
    found.close()


def usage(pod: str, time_ns: int, **fields: float | str) -> Point:
    """A usage point."""
    return Point("usage", ("c", "n", "u", "ns", pod), {"seq": 1, **fields}, time_ns)


def test_any_text_comes_back_as_it_was_or_repaired(writer: InfluxWriter, store: InfluxStore) -> None:
    now = time.time_ns()
    assert writer.write([usage(text, now, service=text) for text in NASTY]) == []

    for text in NASTY:
        kept = text.replace("\n", " ")
        if "\\" not in text:
            (found,) = store.latest("usage", where={"workload": kept})
            assert found.values["service"][0] == kept
    rows = store.latest("usage")
    assert len(rows) == len(NASTY) - 1  # "a\nb" became "a b", the series of another
    assert {row.values["service"][0] for row in rows} <= {text.replace("\n", " ") for text in NASTY}


def test_a_type_conflict_rejects_its_points_only(writer: InfluxWriter, store: InfluxStore, target: Target) -> None:
    now = time.time_ns()
    HttpDoor(target).post([f"usage,cluster=c,node=n,uid=u,namespace=ns,workload=old seq=1.5 {now}".encode()])

    found = writer.write([usage("old", now + 1), *(Point("finding", ("c", "n", "r", "e"), {"seq": i}, now + i) for i in range(50))])

    assert [r.position for r in found] == [0]
    assert "type conflict" in found[0].reason
    assert len(store.range("finding", ["seq"], start_ns=now, end_ns=now + 100)[0].values) == 50


def test_points_outside_the_retention_are_counted(writer: InfluxWriter, store: InfluxStore) -> None:
    now = time.time_ns()
    old = now - 30 * 86_400 * 1_000_000_000
    assert writer.write([usage("a", old), usage("a", now), usage("a", old + 1)]) == []
    assert writer.dropped == {"outside_retention": 2}
    assert writer.written_total == 1
    assert store.range("usage", ["seq"], start_ns=0, end_ns=2**62)[0].times_ns.tolist() == [now]


def test_old_points_and_a_type_conflict_in_one_batch_are_told_apart(writer: InfluxWriter, target: Target) -> None:
    now = time.time_ns()
    HttpDoor(target).post([f"usage,cluster=c,node=n,uid=u,namespace=ns,workload=a seq=1.5 {now}".encode()])

    found = writer.write(
        [usage("a", now - 30 * 86_400 * 1_000_000_000), usage("a", now + 1), Point("finding", ("c", "n", "r", "e"), {"seq": 1}, now)]
    )

    assert [r.position for r in found] == [1]
    assert writer.dropped == {"outside_retention": 1}


def test_the_token_is_for_the_bucket_and_nothing_else(influx_server: InfluxServer, target: Target, writer: InfluxWriter) -> None:
    assert writer.write([usage("a", time.time_ns())]) == []
    elsewhere = replace(target, bucket=influx_server.bucket)
    with pytest.raises(Busy, match="refuses us"):
        InfluxWriter(HttpDoor(elsewhere), where="elsewhere", batch_lines=1).write([usage("a", time.time_ns())])
    with pytest.raises(ConnectionError):
        InfluxStore(elsewhere).latest("device")
    with pytest.raises(SetupRefused):
        setup(replace(target, bucket="another"), target.token, retention_seconds=WEEK_SECONDS)


def test_a_wrong_token_is_busy_and_loud(target: Target) -> None:
    with pytest.raises(Busy, match="401"):
        InfluxWriter(HttpDoor(replace(target, token="wrong")), where="x", batch_lines=1).write([usage("a", time.time_ns())])


def test_setup_again_makes_another_token_and_never_deletes_data(influx_server: InfluxServer, target: Target) -> None:
    again = setup(target, influx_server.token, retention_seconds=WEEK_SECONDS)
    assert again.bucket_made is False
    assert again.token not in ("", target.token)
    assert setup(target, influx_server.token, retention_seconds=2 * WEEK_SECONDS).retention_seconds == 2 * WEEK_SECONDS
    with pytest.raises(SetupRefused, match="would delete data"):
        setup(target, influx_server.token, retention_seconds=WEEK_SECONDS)


def test_setup_names_a_missing_organisation(influx_server: InfluxServer, target: Target) -> None:
    with pytest.raises(SetupRefused, match="nobody"):
        setup(replace(target, org="nobody"), influx_server.token, retention_seconds=WEEK_SECONDS)
