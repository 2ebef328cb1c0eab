"""Makes and migrates the embedded store's tables from the measurement table: one table of series and one of points per measurement.

Points are appended in the order they come, with an index by (series, time): with 2,000 series that takes 2.6 times as many a second as
clustering by series (each tick would touch a page of every series), and the oldest are a prefix that is deleted page by page. A
catalogue that has grown adds columns; nothing is ever dropped, so an older release reads a newer one's file.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Final

from sinks.measurements import MEASUREMENTS, Measurement
from sinks.reading import FULL_MARK

if TYPE_CHECKING:
    from pathlib import Path

    from sinks.flatten import FieldType

FORMAT: Final = 1
"""`user_version` of the file; raised only where an older release could not read it."""

PAGE_BYTES: Final = 8192
WAL_BYTES: Final = 32 * 1024 * 1024
"""What is written beside the file before it is taken over into it."""

_AFFINITY: Final[dict[FieldType, str]] = {"float": "REAL", "int": "INTEGER", "uint": "INTEGER", "bool": "INTEGER", "string": "TEXT"}


def open_for_writing(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """A connection in autocommit mode with WAL on, the tables made or migrated.

    Raises ValueError for a file that a newer release made or that is no store of ours.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, timeout=5, check_same_thread=False)
    try:
        # both only take effect before the first table exists
        connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA cache_size=-16000")
        connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
        # SQLite's own is a thousand pages; with four times as many a busy writer took a seventh less time, a third of it still
        # waiting for the disk (measured once)
        connection.execute(f"PRAGMA wal_autocheckpoint={WAL_BYTES // PAGE_BYTES}")
        migrate(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise ValueError(f"{path}: {error}; move the file away, a new store is made") from None
    except ValueError:
        connection.close()
        raise
    return connection


def settle(path: Path) -> None:
    """Fold the write-ahead log into the file and remove it: SQLite leaves that to the last connection that closes, which was a reader's
    where the writer ended first. Nothing happens where another process has the file open, or there is none.
    """
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=1)
        with contextlib.closing(connection):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables to the measurement table, in one transaction."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > FORMAT:
        raise ValueError(f"{path} has format {found}, this release knows {FORMAT}: use the newer release, or another sinks.sqlite.path")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for measurement in MEASUREMENTS.values():
            _migrate(connection, measurement, path)
        connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def columns(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """Name and declared type of each column; empty where the table does not exist."""
    return {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({quoted(table)})")}


def quoted(name: str) -> str:
    """A name as an SQL identifier (`index` and `limit` are fields of ours)."""
    return '"' + name.replace('"', '""') + '"'


def series_table(measurement: Measurement) -> str:
    """Name of the table of a measurement's series."""
    return f"{measurement.name}_series"


def _migrate(connection: sqlite3.Connection, measurement: Measurement, path: Path) -> None:
    wanted = {field.name: _AFFINITY[field.type] for field in measurement.fields}
    points, series = quoted(measurement.name), quoted(series_table(measurement))
    if not columns(connection, measurement.name):
        body = ", ".join(f"{quoted(name)} {kind}" for name, kind in wanted.items())
        key = "series INTEGER NOT NULL, time_ns INTEGER NOT NULL"
        connection.execute(f"CREATE TABLE {points} ({key}, {body}, PRIMARY KEY (series, time_ns))")
        tags = ", ".join(f"{quoted(tag)} TEXT NOT NULL DEFAULT ''" for tag in measurement.tags)
        connection.execute(f"CREATE TABLE {series} (id INTEGER PRIMARY KEY, {tags})")
    have = columns(connection, measurement.name)
    for name, kind in wanted.items():
        if name not in have:
            connection.execute(f"ALTER TABLE {points} ADD COLUMN {quoted(name)} {kind}")
        elif have[name] != kind:
            raise ValueError(f"{path}: {measurement.name}.{name} is {have[name]} there, {kind} in this release; move the file away")
    have = columns(connection, series_table(measurement))
    if grown := [tag for tag in measurement.tags if tag not in have]:
        connection.execute(f"DROP INDEX IF EXISTS {quoted(measurement.name + '_by_tags')}")
        for tag in grown:
            connection.execute(f"ALTER TABLE {series} ADD COLUMN {quoted(tag)} TEXT NOT NULL DEFAULT ''")
    tags = ", ".join(quoted(tag) for tag in measurement.tags)
    connection.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS {quoted(measurement.name + '_by_tags')} ON {series} ({tags})")
    if FULL_MARK in wanted:
        mark = f"{quoted(FULL_MARK)} IS NOT NULL"
        connection.execute(f"CREATE INDEX IF NOT EXISTS {quoted(measurement.name + '_full')} ON {points} (series, time_ns) WHERE {mark}")
