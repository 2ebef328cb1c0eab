"""Reads the embedded store from any process while another writes it: short read transactions on a read-only connection."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, TypeVar

from schemas.store import Event, Interval, Latest, Measurement, Row, Series, Tags
from sinks import reading
from sinks.points import SPREAD_NS
from sinks.sqlite import query
from sinks.sqlite.schema import FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from sinks.measurements import Measurement as Table

_T = TypeVar("_T")


class SqliteStore:
    """schemas.store.Store on the file that SqliteWriter writes. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def latest(self, measurement: Measurement, *, where: Mapping[str, str] | None = None, since_ns: int = 0) -> list[Latest]:
        table = reading.measurement_of(measurement, where)
        with self._lock:
            return self._guard(
                lambda db: [found for s in query.series(db, table, where) if (found := query.latest(db, table, s, since_ns))]
            )

    def range(
        self,
        measurement: Measurement,
        fields: Sequence[str],
        *,
        start_ns: int,
        end_ns: int,
        step_ns: int | None = None,
        where: Mapping[str, str] | None = None,
        max_age_ns: int | None = None,
    ) -> list[Series]:
        table = reading.measurement_of(measurement, where)
        reading.check_numeric(table, fields)

        def read(db: sqlite3.Connection) -> list[Series]:
            found = []
            for series in query.series(db, table, where):
                for field in fields:
                    held = reading.held_ns(table, field, step_ns, max_age_ns) if step_ns is not None else 0
                    texts = query.absent(db, table, series[0], start_ns - held, end_ns) if step_ns is not None else []
                    times, values = query.points(db, table, series[0], field, start_ns - held, end_ns)
                    if made := reading.series_of(series[1], field, times, values, texts, start_ns, end_ns, step_ns, held):
                        found.append(made)
            return found

        with self._lock:
            return self._guard(read)

    def rows(self, measurement: Measurement, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Row]:
        table = reading.measurement_of(measurement, where)
        with self._lock:
            return reading.in_order(self._guard(lambda db: self._rows(db, table, where, start_ns, end_ns)))

    def series(self, measurement: Measurement, *, where: Mapping[str, str] | None = None) -> list[Tags]:
        table = reading.measurement_of(measurement, where)
        with self._lock:
            return self._guard(lambda db: [tags for _, tags in query.series(db, table, where)])

    def events(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Event]:
        asked = (where or {}).get("kind") == reading.ALLOCATION
        found = self._events(where, start_ns, end_ns + SPREAD_NS)
        return reading.events_between((e for e in found if asked or e.kind != reading.ALLOCATION), start_ns, end_ns)

    def intervals(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Interval]:
        allocations = {**(where or {}), "kind": reading.ALLOCATION}
        return reading.intervals_of(self._events(allocations, 0, end_ns + SPREAD_NS), start_ns, end_ns)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _events(self, where: Mapping[str, str] | None, start_ns: int, end_ns: int) -> list[Event]:
        table = reading.measurement_of("event", where)
        with self._lock:
            found = self._guard(lambda db: self._rows(db, table, where, start_ns, end_ns))
        return [reading.event_of(row.tags, row.at_ns, row.fields) for row in found]

    @staticmethod
    def _rows(db: sqlite3.Connection, table: Table, where: Mapping[str, str] | None, start_ns: int, end_ns: int) -> list[Row]:
        return [
            Row(time_ns, tags, fields)
            for identity, tags in query.series(db, table, where)
            for time_ns, fields in query.rows(db, table, identity, start_ns, end_ns)
        ]

    def _guard(self, read: Callable[[sqlite3.Connection], list[_T]]) -> list[_T]:
        """Run a read in one transaction, so that all of it sees one state. Raises ConnectionError where the file cannot be read."""
        try:
            db = self._open()
            db.execute("BEGIN")
            try:
                return read(db)
            finally:
                db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            raise ConnectionError(f"{self._path}: {error}; is the store's writer (xpulse sink sqlite) running?") from None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if not self._path.exists():
                raise ConnectionError(f"{self._path} does not exist yet: the store's writer (xpulse sink sqlite) makes it")
            address = f"{self._path.absolute().as_uri()}?mode=ro"
            connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=5)
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            if found != FORMAT:
                connection.close()
                raise ConnectionError(f"{self._path} has format {found}, this release reads {FORMAT} (0: its writer has not made it yet)")
            connection.execute("PRAGMA cache_size=-8000")
            self._connection = connection
        return self._connection
