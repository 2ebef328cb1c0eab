"""Deletes the oldest points in small steps: what is past the retention, and more where the file would outgrow its bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sinks.measurements import MEASUREMENTS
from sinks.sqlite.schema import quoted, series_table

if TYPE_CHECKING:
    import sqlite3

    from sinks.measurements import Measurement

STEP_ROWS: Final = 5_000
"""Rows of one transaction: a few MB of WAL, some tens of milliseconds."""

FULL_RATIO: Final = 0.9
"""Above this share of the bound the oldest points go; the file itself stays below the bound by `max_page_count`."""

_SHARE: Final = 20
"""Where the file is full, a twentieth goes at once."""


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of pages in use; free pages are filled again before the file grows."""
    return (_pragma(connection, "page_count") - _pragma(connection, "freelist_count")) * _pragma(connection, "page_size")


def expire(connection: sqlite3.Connection, before_ns: int, *, most_rows: int) -> int:
    """Delete points older than `before_ns`, about `most_rows` of each measurement; returns how many.

    Points are looked at in the order they were written. One that was written late goes when those before it are gone.
    """
    deleted = 0
    for measurement in MEASUREMENTS.values():
        gone = 0
        while gone < most_rows:
            step = _delete_first(connection, measurement.name, STEP_ROWS, before_ns)
            gone += step
            if step < STEP_ROWS:
                break
        if gone:
            _forget_empty_series(connection, measurement)
        deleted += gone
    return deleted


def drop_oldest(connection: sqlite3.Connection) -> int:
    """Delete the oldest twentieth of the points of the measurement that has most; returns how many."""
    spans = {m.name: _span(connection, m.name) for m in MEASUREMENTS.values()}
    name = max(spans, key=lambda n: spans[n])
    wanted = -(-spans[name] // _SHARE)
    deleted = 0
    while deleted < wanted:
        step = _delete_first(connection, name, min(STEP_ROWS, wanted - deleted), None)
        deleted += step
        if not step:
            break
    _forget_empty_series(connection, MEASUREMENTS[name])
    return deleted


def _span(connection: sqlite3.Connection, table: str) -> int:
    low, high = connection.execute(f"SELECT (SELECT min(rowid) FROM {quoted(table)}), (SELECT max(rowid) FROM {quoted(table)})").fetchone()
    return 0 if low is None else int(high - low + 1)


def _delete_first(connection: sqlite3.Connection, table: str, rows: int, before_ns: int | None) -> int:
    points = quoted(table)
    chosen = f"SELECT rowid FROM {points} ORDER BY rowid LIMIT ?"
    if before_ns is None:
        return connection.execute(f"DELETE FROM {points} WHERE rowid IN ({chosen})", (rows,)).rowcount
    return connection.execute(f"DELETE FROM {points} WHERE rowid IN ({chosen}) AND time_ns < ?", (rows, before_ns)).rowcount


def _forget_empty_series(connection: sqlite3.Connection, measurement: Measurement) -> None:
    points, series = quoted(measurement.name), quoted(series_table(measurement))
    connection.execute(f"DELETE FROM {series} WHERE NOT EXISTS (SELECT 1 FROM {points} WHERE {points}.series = {series}.id)")


def give_back(connection: sqlite3.Connection, pages: int) -> None:
    """Return free pages at the end of the file to the file system."""
    connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
