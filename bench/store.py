"""How many device points a store holds: what was published is missing until it is found there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol

from tests.integration.servers.influxdb import InfluxServer


class Stored(Protocol):
    """A store that can be counted."""

    def device_points(self) -> int:
        """Distinct points of the measurement `device`."""
        ...


class SqliteStored:
    """The embedded store's file; a point is one row, by its primary key."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def device_points(self) -> int:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM device").fetchone()
        return int(count)


class InfluxStored:
    """A bucket; every point has `seq`, and a point of one series and time is one."""

    def __init__(self, server: InfluxServer) -> None:
        self._server = server

    def device_points(self) -> int:
        flux = (
            f'from(bucket: "{self._server.bucket}") |> range(start: 0, stop: 2100-01-01T00:00:00Z) '
            '|> filter(fn: (r) => r._measurement == "device" and r._field == "seq") |> group() |> count()'
        )
        rows = [line.split(",") for line in self._server.query(flux).splitlines() if line.strip()]
        if len(rows) < 2:
            return 0
        return int(rows[1][rows[0].index("_value")])
