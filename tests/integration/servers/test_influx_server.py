"""The real InfluxDB keeps what it acknowledged, however it ends."""

from __future__ import annotations

import http.client

import pytest

from tests.integration.servers.influxdb import InfluxServer

pytestmark = pytest.mark.integration

POINTS = 'from(bucket: "xpulse") |> range(start: 0) |> keep(columns: ["_value"]) |> sort()'


def values(influx: InfluxServer) -> list[str]:
    rows = [line.split(",") for line in influx.query(POINTS).splitlines() if line.startswith(",")]
    return [row[-1] for row in rows if row[-1] != "_value"]


def test_data_and_token_survive_kill_and_restart(own_influx: InfluxServer) -> None:
    url, first_pid = own_influx.url, own_influx.pid
    own_influx.write("device power_watts=1 1000000000\ndevice power_watts=2 2000000000")

    own_influx.kill()
    assert not own_influx.running
    own_influx.start()
    assert values(own_influx) == ["1", "2"]

    own_influx.write("device power_watts=3 3000000000")
    own_influx.restart()
    assert own_influx.url == url
    assert own_influx.pid != first_pid
    assert values(own_influx) == ["1", "2", "3"]


def test_asks_for_the_token(own_influx: InfluxServer) -> None:
    connection = http.client.HTTPConnection(own_influx.url.removeprefix("http://"), timeout=10)
    connection.request("GET", "/api/v2/buckets")
    assert connection.getresponse().status == 401
    connection.close()


def test_an_error_shows_what_the_server_said(own_influx: InfluxServer) -> None:
    with pytest.raises(RuntimeError, match=r"/api/v2/write.* answered 400: .*partial write|unable to parse"):
        own_influx.write("no line protocol")


def test_is_the_release_it_says(own_influx: InfluxServer) -> None:
    assert b'"version":"v2.8.0"' in own_influx.request("GET", "/health").replace(b" ", b"")
