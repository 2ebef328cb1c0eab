"""The embedded store's own promises: retention, bounded size, growth by columns, readers beside the writer, clear errors."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.flow import Busy
from schemas.store import Scalar
from sinks.points import Point
from sinks.sqlite.store import SqliteStore
from sinks.sqlite.writer import SqliteWriter

DAY_NS = 86_400 * 1_000_000_000
NOW = 1_800_000_000_000_000_000


def point(time_ns: int, uid: str = "nvidia:1", **fields: Scalar) -> Point:
    """A device point."""
    return Point("device", ("c", "n", "nvidia", uid, "accelerator", "H200"), {"seq": 1, **fields}, time_ns)


class Clock:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Place:
    """A file, and the writers and readers that a test opened on it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s" / "x.sqlite"
        self.opened: list[SqliteWriter | SqliteStore] = []

    def writer(self, clock: Clock | None = None, max_bytes: int = 1 << 28) -> SqliteWriter:
        """A writer that keeps a day."""
        found = SqliteWriter(self.path, retention_ns=DAY_NS, max_bytes=max_bytes, clock_ns=clock or Clock())
        self.opened.append(found)
        return found

    def store(self) -> SqliteStore:
        """A reader."""
        found = SqliteStore(self.path)
        self.opened.append(found)
        return found

    def times(self) -> list[int]:
        """Times of all points."""
        found = self.store().range("device", ["seq"], start_ns=0, end_ns=2**62)
        return [t for series in found for t in series.times_ns.tolist()]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An empty folder; what was opened is closed."""
    found = Place(tmp_path)
    yield found
    for each in found.opened:
        each.close()


def test_fields_of_one_point_are_merged(place: Place) -> None:
    with_power, with_fan = point(NOW, power_watts=1.5), point(NOW, fan_ratio=0.5)
    sink = place.writer()
    sink.write([with_power])
    sink.write([with_fan])
    (found,) = place.store().latest("device")
    assert {name: value for name, (value, _) in found.values.items()} == {"seq": 1, "power_watts": 1.5, "fan_ratio": 0.5}


def test_points_expire_and_their_series_with_them(place: Place) -> None:
    clock = Clock()
    sink = place.writer(clock)
    sink.write([point(NOW), point(NOW + 1, uid="nvidia:2")])
    clock.now = NOW + DAY_NS + 1
    sink.write([point(clock.now, uid="nvidia:2")])

    assert place.times() == [NOW + 1, clock.now]
    assert len(place.store().series("device")) == 1
    assert sink.expired_total == 1


def test_a_point_older_than_the_retention_is_counted_not_stored(place: Place) -> None:
    sink = place.writer()
    assert sink.write([point(NOW - DAY_NS - 1), point(NOW)]) == []
    assert place.times() == [NOW]
    assert sink.dropped == {"outside_retention": 1}


def test_the_file_stays_below_its_bound_and_keeps_the_newest(place: Place) -> None:
    clock = Clock()
    sink = place.writer(clock, max_bytes=4 << 20)
    text = "x" * 1000
    for _ in range(100):
        clock.now += 6_000_000_000
        batch = [point(clock.now + j, source=text) for j in range(100)]
        try:
            sink.write(batch)
        except Busy:
            assert sink.write(batch) == []

    assert place.path.stat().st_size <= 4 << 20
    kept = place.times()
    assert kept[-1] == clock.now + 99
    assert kept == sorted(kept)
    assert sink.dropped["size_bound"] == 10_000 - len(kept)
    assert len(kept) > 1500


def test_the_same_series_is_written_after_its_trim(place: Place) -> None:
    clock = Clock()
    sink = place.writer(clock)
    sink.write([point(NOW)])
    clock.now += 2 * DAY_NS
    sink.write([])
    assert place.times() == []
    sink.write([point(clock.now)])
    assert place.times() == [clock.now]


def test_a_grown_catalogue_adds_columns_to_an_older_file(place: Place) -> None:
    sink = place.writer()
    sink.write([point(NOW, power_watts=1.0)])
    sink.close()
    with sqlite3.connect(place.path) as db:
        db.execute("ALTER TABLE device DROP COLUMN fan_ratio")
        db.execute("DROP INDEX usage_by_tags")
        db.execute("ALTER TABLE usage_series DROP COLUMN workload")
    db.close()
    reader = place.store()
    assert reader.range("device", ["fan_ratio"], start_ns=0, end_ns=2**62) == []

    newer = place.writer()
    newer.write([point(NOW + 1, fan_ratio=0.25), Point("usage", ("c", "n", "u", "ns", "w"), {"seq": 1}, NOW)])

    (found,) = reader.range("device", ["fan_ratio"], start_ns=0, end_ns=2**62)
    assert found.values.tolist() == [0.25]
    assert dict(reader.series("usage")[0])["workload"] == "w"
    reader.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PRAGMA user_version=2", "format 2, this release knows 1"),
        ("ALTER TABLE device DROP COLUMN serial; ALTER TABLE device ADD COLUMN serial INTEGER", "device.serial is INTEGER there, TEXT"),
    ],
    ids=["newer format", "other type"],
)
def test_a_file_that_cannot_be_used_is_refused(place: Place, change: str, message: str) -> None:
    place.writer().close()
    db = sqlite3.connect(place.path)
    db.executescript(change)
    db.close()
    with pytest.raises(ValueError, match=message):
        place.writer()


def test_a_file_that_is_no_database_is_refused(place: Place) -> None:
    place.path.parent.mkdir()
    place.path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(ValueError, match="move the file away"):
        place.writer()


def test_a_locked_file_is_busy_and_nothing_is_lost(place: Place) -> None:
    sink = place.writer()
    sink._connection.execute("PRAGMA busy_timeout=0")
    other = sqlite3.connect(place.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="locked"):
        sink.write([point(NOW)])
    other.execute("ROLLBACK")
    other.close()
    assert sink.write([point(NOW)]) == []
    assert place.times() == [NOW]


def test_unknown_names_are_refused_one_by_one(place: Place) -> None:
    sink = place.writer()
    rejected = sink.write([point(NOW, nonsense=1), point(NOW), Point("device", ("c",), {"seq": 1}, NOW)])
    assert [r.position for r in rejected] == [0, 2]
    assert "nonsense" in rejected[0].reason


def test_a_store_that_is_not_there_yet_is_a_connection_error(place: Place) -> None:
    with pytest.raises(ConnectionError, match="does not exist yet"):
        place.store().latest("device")


def test_another_process_reads_while_it_is_written(place: Place) -> None:
    sink = place.writer()
    sink.write([point(NOW)])
    code = (
        "import sys, pathlib\n"
        "from sinks.sqlite.store import SqliteStore\n"
        "print(SqliteStore(pathlib.Path(sys.argv[1])).latest('device')[0].at_ns)\n"
    )
    sink._connection.execute("BEGIN IMMEDIATE")
    found = subprocess.run([sys.executable, "-c", code, str(place.path)], capture_output=True, text=True, check=True)
    sink._connection.execute("ROLLBACK")
    assert int(found.stdout) == NOW
