"""A table's rows are points like any other: writers that take them as columns store the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from sinks.influxdb.line import Encoder
from sinks.points import Point, Row
from sinks.sqlite.store import SqliteStore
from sinks.sqlite.writer import SqliteWriter
from sinks.table import Points, Table

T0 = 1_800_000_000_000_000_000
TAGS = [("c", "n", "nvidia", f"nvidia:{i}", "accelerator", "H200") for i in range(3)]
TABLE = Table("device", ("seq", "power_watts"), TAGS, [T0, T0 + 1, T0 + 2], [[1, 2, 3], [0.5, 1.5, 2.5]])
SINGLE = Point("device", TAGS[0], {"seq": 9, "absent": "fan_ratio=error"}, T0 + 5)
POINTS = Points([SINGLE], [TABLE, TABLE])


def test_positions_count_through_single_points_and_tables() -> None:
    assert len(POINTS) == 7
    assert list(POINTS) == [POINTS[i] for i in range(7)] == list(POINTS[:])
    assert POINTS[0] == POINTS[-7] == SINGLE
    assert POINTS[2] == Point("device", TAGS[1], {"seq": 2, "power_watts": 1.5}, T0 + 1)
    for outside in (7, -8):
        with pytest.raises(IndexError):
            POINTS[outside]


def test_a_row_is_a_mapping() -> None:
    row = Row(("a", "b"), (1, 2.5))
    assert row == {"a": 1, "b": 2.5}
    assert (row["b"], "c" in row, len(row)) == (2.5, False, 2)
    with pytest.raises(KeyError):
        row["c"]


def test_lines_of_a_table_are_those_of_its_points() -> None:
    assert Encoder().lines(POINTS) == Encoder().lines(list(POINTS))


@pytest.mark.parametrize("old_ns", [0, T0 + 2], ids=["all_within", "some_past_the_retention"])
def test_the_embedded_store_holds_the_same(old_ns: int, tmp_path: Path) -> None:
    stored = []
    for name, points in (("columns", POINTS), ("points", list(POINTS))):
        writer = SqliteWriter(tmp_path / f"{name}.sqlite", retention_ns=10**15, max_bytes=1 << 28, clock_ns=lambda: old_ns + 10**15)
        assert writer.write(points) == []
        store = SqliteStore(tmp_path / f"{name}.sqlite")
        found = store.range("device", ["seq", "power_watts"], start_ns=T0, end_ns=T0 + 10)
        stored.append([(s.tags, s.field, s.times_ns.tolist(), s.values.tolist()) for s in found])
        store.close()
        assert writer.dropped.total() == (0 if old_ns == 0 else 4)
        writer.close()
    assert stored[0] == stored[1] != []
