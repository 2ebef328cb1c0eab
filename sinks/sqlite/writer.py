"""Writes points to the embedded store: one transaction per call, one prepared upsert per set of fields, then a bounded bit of trimming."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from schemas.flow import Busy
from sinks.measurements import MEASUREMENTS
from sinks.points import RejectedPoint, Row
from sinks.sqlite import trim
from sinks.sqlite.schema import PAGE_BYTES, open_for_writing, quoted, series_table
from sinks.table import Points

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from schemas.store import Scalar
    from sinks.points import Point
    from sinks.table import Table

TRIM_EVERY_NS: Final = 5_000_000_000
_MOST_TRIMMED_ROWS: Final = 20_000
"""Rows deleted in one go: several times what arrives in five seconds at the floor rate of a small fleet."""

_Row = tuple["Scalar", ...]


class SqliteWriter:
    """A PointWriter; the only writer of its file. Writing a point twice changes nothing; fields of one point are merged.

    Points older than `retention_ns` are counted and not stored, as InfluxDB does it. `clock_ns` is the wall clock.
    """

    def __init__(
        self,
        path: Path,
        *,
        retention_ns: int,
        max_bytes: int,
        synchronous: str = "normal",
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._path = path
        self._retention_ns = retention_ns
        self._max_bytes = max_bytes
        self._clock_ns = clock_ns
        self._connection = open_for_writing(path, synchronous=synchronous)
        self._connection.execute(f"PRAGMA max_page_count={max_bytes // PAGE_BYTES}")
        self._series: dict[str, dict[tuple[str, ...], int]] = {}
        self._upserts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._dropped: Counter[str] = Counter()
        self.written_total = self.expired_total = self.failed_trims_total = 0
        self._next_trim_ns = 0

    def write(self, points: Sequence[Point]) -> list[RejectedPoint]:
        """Returns once every point is committed. Raises Busy where the file is locked or the disk is full."""
        try:
            rejected, stored, outside = self._store(points)
        except sqlite3.OperationalError as error:
            self._series.clear()
            raise self._busy(error) from None
        self.written_total += stored
        self._dropped["outside_retention"] += outside
        self._trim_when_due()
        return rejected

    @property
    def dropped(self) -> Counter[str]:
        return +self._dropped

    def close(self) -> None:
        self._connection.close()

    def _store(self, points: Sequence[Point]) -> tuple[list[RejectedPoint], int, int]:
        rejected: list[RejectedPoint] = []
        groups: dict[str, list[_Row]] = {}
        too_old_ns = self._clock_ns() - self._retention_ns
        outside = 0
        one_by_one: Sequence[Point] = points
        tables: Sequence[Table] = ()
        if isinstance(points, Points) and all(min(table.times_ns, default=too_old_ns) >= too_old_ns for table in points.tables):
            one_by_one, tables = points.single, points.tables
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        rows: list[_Row] = []
        known: dict[tuple[str, ...], int] = {}
        last_measurement: str = ""
        last_names: tuple[str, ...] = ()
        try:
            for position, (measurement, tags, fields, time_ns) in enumerate(one_by_one):
                if time_ns < too_old_ns:
                    outside += 1
                    continue
                names, values = (fields.names, fields.numbers) if type(fields) is Row else (tuple(fields), tuple(fields.values()))
                try:
                    # points mostly come in runs of one shape: comparing is cheaper than looking up
                    if names != last_names or measurement != last_measurement:
                        shape = (measurement, names)
                        rows = groups.setdefault(self._upserts.get(shape) or self._upsert(shape), [])
                        known, last_measurement, last_names = self._series.setdefault(measurement, {}), measurement, names
                    series = known.get(tags) or self._series_of(measurement, tags)
                except ValueError as error:
                    rejected.append(RejectedPoint(position, str(error)))
                    continue
                rows.append((series, time_ns, *values))
            for statement, rows in groups.items():
                connection.executemany(statement, rows)
            for table in tables:
                self._store_table(table)
            connection.execute("COMMIT")
        except BaseException:
            self._series.clear()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return rejected, len(points) - len(rejected) - outside, outside

    def _store_table(self, table: Table) -> None:
        known, shape = self._series.setdefault(table.measurement, {}), (table.measurement, table.names)
        series = [known.get(tags) or self._series_of(table.measurement, tags) for tags in table.tags]
        statement = self._upserts.get(shape) or self._upsert(shape)
        self._connection.executemany(statement, zip(series, table.times_ns, *table.columns, strict=True))

    def _upsert(self, shape: tuple[str, tuple[str, ...]]) -> str:
        name, fields = shape
        measurement = MEASUREMENTS.get(name)  # type: ignore[call-overload]  # any text may come, an unknown one is refused
        if measurement is None or not fields:
            raise ValueError(f"no measurement {name!r}" if measurement is None else "a point without fields")
        if unknown := [field for field in fields if field not in measurement.types]:
            raise ValueError(f"{name} has no field {', '.join(unknown)}")
        names = [quoted(field) for field in fields]
        merged = ", ".join(f"{n} = excluded.{n}" for n in names)
        places = ", ".join("?" for _ in range(len(names) + 2))
        statement = (
            f"INSERT INTO {quoted(name)} (series, time_ns, {', '.join(names)}) VALUES ({places}) "
            f"ON CONFLICT (series, time_ns) DO UPDATE SET {merged}"
        )
        self._upserts[shape] = statement
        return statement

    def _series_of(self, name: str, tags: tuple[str, ...]) -> int:
        measurement = MEASUREMENTS[name]  # type: ignore[index]  # _upsert has refused unknown ones
        if len(tags) != len(measurement.tags):
            raise ValueError(f"{name}: {len(tags)} tag values for tags {measurement.tags}")
        table = quoted(series_table(measurement))
        names = [quoted(tag) for tag in measurement.tags]
        places = ", ".join("?" for _ in names)
        self._connection.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({places})", tags)
        equal = " AND ".join(f"{n} = ?" for n in names)
        found = int(self._connection.execute(f"SELECT id FROM {table} WHERE {equal}", tags).fetchone()[0])
        self._series.setdefault(name, {})[tags] = found
        return found

    def _trim_when_due(self) -> None:
        now = self._clock_ns()
        if now < self._next_trim_ns:
            return
        self._next_trim_ns = now + TRIM_EVERY_NS
        try:
            self.trim()
        except sqlite3.OperationalError:
            # a reader holds the file, or the disk is full: the next call, or the write that needs the room, tries again
            self.failed_trims_total += 1

    def trim(self) -> None:
        """Delete what is past the retention, and the oldest twentieth while more than nine tenths of the bound is in use."""
        connection = self._connection
        expired = trim.expire(connection, self._clock_ns() - self._retention_ns, most_rows=_MOST_TRIMMED_ROWS)
        self.expired_total += expired
        early = 0
        while trim.used_bytes(connection) > self._max_bytes * trim.FULL_RATIO:
            dropped = trim.drop_oldest(connection)
            early += dropped
            if not dropped:
                break
        self._dropped["size_bound"] += early
        if expired or early:
            self._series.clear()
            trim.give_back(connection, 1000)

    def _busy(self, error: sqlite3.OperationalError) -> Busy:
        if "full" in str(error):
            # the bound was reached between two trims, or the disk is full
            try:
                self.trim()
            except sqlite3.OperationalError:
                self.failed_trims_total += 1
            return Busy(1.0, f"{self._path}: {error}; oldest points were deleted; if it stays, free disk space")
        return Busy(0.5, f"{self._path}: {error}; the same points are written again")
