"""The embedded store's SQL: each function asks one thing of one series, on a connection that is in a read transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from schemas.store import Latest, Scalar, Tags
from sinks import reading
from sinks.sqlite.schema import columns, quoted, series_table

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from sinks.measurements import Measurement

_SPAN: Final = "series = ? AND time_ns >= ? AND time_ns < ?"
SeriesRow = tuple[int, Tags]


def series(db: sqlite3.Connection, table: Measurement, where: Mapping[str, str] | None) -> list[SeriesRow]:
    """Number and tags of the series that have these tags, sorted by tags."""
    # a file that an older release wrote may lack a tag: it is empty there
    have = columns(db, series_table(table))
    names = ", ".join(quoted(tag) if tag in have else "''" for tag in table.tags)
    equal = " AND ".join(["1", *(f"{quoted(tag)} = ?" for tag in where or {})])
    rows = db.execute(f"SELECT id, {names} FROM {quoted(series_table(table))} WHERE {equal}", tuple((where or {}).values()))
    return sorted(((row[0], reading.tags_of(table, row[1:])) for row in rows), key=lambda found: found[1])


def rows(db: sqlite3.Connection, table: Measurement, identity: int, start_ns: int, end_ns: int) -> Iterator[tuple[int, dict[str, Scalar]]]:
    """Time and said fields of each point in [start, end), oldest first."""
    names = _fields(db, table)
    listed = ", ".join(quoted(name) for name in names)
    sql = f"SELECT time_ns, {listed} FROM {quoted(table.name)} WHERE {_SPAN} ORDER BY time_ns"
    for time_ns, *values in db.execute(sql, (identity, start_ns, end_ns)):
        yield time_ns, {name: _typed(table, name, value) for name, value in zip(names, values, strict=True) if value is not None}


def latest(db: sqlite3.Connection, table: Measurement, found: SeriesRow, since_ns: int) -> Latest | None:
    """Newest state of a series: of a device everything since its last full sample, of anything else its newest point."""
    identity, tags = found
    points = quoted(table.name)
    (newest,) = db.execute(f"SELECT max(time_ns) FROM {points} WHERE series = ? AND time_ns >= ?", (identity, since_ns)).fetchone()
    if newest is None:
        return None
    since = newest
    if reading.FULL_MARK in table.types:
        full = f"SELECT max(time_ns) FROM {points} WHERE series = ? AND {quoted(reading.FULL_MARK)} IS NOT NULL"
        since = max(db.execute(full, (identity,)).fetchone()[0] or 0, since_ns)
    said: dict[str, reading.FieldAt] = {}
    texts: list[tuple[int, str]] = []
    for time_ns, fields in rows(db, table, identity, since, newest + 1):
        said.update({name: (value, time_ns) for name, value in fields.items()})
        if "absent" in fields:
            texts.append((time_ns, str(fields["absent"])))
    return reading.latest_of(tags, said, texts)


def points(
    db: sqlite3.Connection, table: Measurement, identity: int, field: str, start_ns: int, end_ns: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Times and values of one numeric field in [start, end)."""
    import numpy as np

    if field not in _fields(db, table):
        return np.empty(0, np.int64), np.empty(0)
    name = quoted(field)
    sql = f"SELECT time_ns, {name} FROM {quoted(table.name)} WHERE {_SPAN} AND {name} IS NOT NULL ORDER BY time_ns"
    found = db.execute(sql, (identity, start_ns, end_ns)).fetchall()
    # not one array of both: a time does not fit a float64
    return np.array([row[0] for row in found], np.int64), np.array([row[1] for row in found], np.float64)


def absent(db: sqlite3.Connection, table: Measurement, identity: int, start_ns: int, end_ns: int) -> list[tuple[int, str]]:
    """The `absent` texts in [start, end) that name something."""
    if "absent" not in table.types:
        return []
    sql = f"SELECT time_ns, absent FROM {quoted(table.name)} WHERE {_SPAN} AND absent <> '' ORDER BY time_ns"
    return db.execute(sql, (identity, start_ns, end_ns)).fetchall()


def _fields(db: sqlite3.Connection, table: Measurement) -> list[str]:
    have = columns(db, table.name)
    return [name for name in table.types if name in have]


def _typed(table: Measurement, name: str, value: Scalar) -> Scalar:
    return bool(value) if table.types[name] == "bool" else value
