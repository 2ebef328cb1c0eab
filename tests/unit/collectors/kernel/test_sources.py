"""The two sources: where they begin, what they count as lost, and what they say where they may not read."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.kernel.journal import Journal
from collectors.kernel.kmsg import Kmsg
from collectors.kernel.source import Batch, Missing, Position
from tests.fakes.kernel_log import FakeJournal, FakeKmsg

FAR = time.monotonic() + 10_000


def kmsg(ring: FakeKmsg, after: Position | None = None) -> Kmsg:
    source = Kmsg(Path(os.devnull), ring.read)
    ring.rewind()
    source.open(after)
    return source


def texts(batch: Batch) -> list[str]:
    return [record.text for record in batch.records]


def test_kmsg_begins_with_the_oldest_record_and_goes_on() -> None:
    ring = FakeKmsg()
    for i in range(3):
        ring.log(i, f"line {i}")
    source = kmsg(ring)
    assert texts(source.read(2, FAR)) == ["line 0", "line 1"]
    assert texts(source.read(9, FAR)) == ["line 2"]
    batch = source.read(9, FAR)
    assert (batch.records, batch.more, batch.lost, batch.position) == ([], False, 0, Position(2, 2_000_000, ""))
    ring.log(3, "line 3")
    assert texts(source.read(9, FAR)) == ["line 3"]
    source.close()


def test_kmsg_goes_on_behind_a_position_and_counts_what_was_overwritten() -> None:
    ring = FakeKmsg(room=5)
    for i in range(10):
        ring.log(i, f"line {i}")
    source = kmsg(ring, Position(2, 2_000_000, ""))
    batch = source.read(99, FAR)
    assert (texts(batch), batch.lost) == ([f"line {i}" for i in range(5, 10)], 2)
    again = kmsg(ring, batch.position)
    assert again.read(99, FAR).records == []
    for one in (source, again):
        one.close()


def test_kmsg_counts_an_overrun_while_it_reads() -> None:
    ring = FakeKmsg(room=4)
    ring.log(0, "line 0")
    source = kmsg(ring)
    source.read(99, FAR)
    for i in range(1, 10):
        ring.log(i, f"line {i}")
    batch = source.read(99, FAR)
    assert (texts(batch), batch.lost) == ([f"line {i}" for i in range(6, 10)], 5)
    source.close()


def test_kmsg_finds_its_place_by_time_where_the_journal_was_read_before() -> None:
    ring = FakeKmsg()
    for i in range(3):
        ring.log(i, f"line {i}")
    source = kmsg(ring, Position(-1, 1_000_000, "s=1"))
    assert texts(source.read(99, FAR)) == ["line 2"]
    source.close()


def test_nonsense_is_counted_and_a_deadline_is_kept() -> None:
    ring = FakeKmsg(room=2000)
    ring.raw(b"nonsense")
    for i in range(1000):
        ring.log(i, f"line {i}")
    source = kmsg(ring)
    batch = source.read(2000, 0.0)
    assert (batch.nonsense, len(batch.records), batch.more) == (1, 254, True)
    source.close()


def test_the_real_device_is_read_where_it_may_be() -> None:
    source = Kmsg(Path("/dev/kmsg"))
    try:
        source.open(None)
    except Missing as error:
        pytest.skip(str(error))
    batch = source.read(200, FAR)
    source.close()
    numbers = [record.sequence for record in batch.records]
    assert numbers
    assert numbers == sorted(set(numbers))
    assert (batch.lost, batch.nonsense) == (0, 0)


def test_a_log_that_is_not_there_is_said_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"none cannot be opened: No such file .* mount it from the host"):
        Kmsg(tmp_path / "none").open(None)


def test_a_log_that_may_not_be_read_is_said_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Missing, match=r"may not be read: .*CAP_SYSLOG.*dmesg_restrict"):
        Kmsg(tmp_path / "kmsg").open(None)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[tuple[FakeJournal, Journal]]:
    fake = FakeJournal(tmp_path)
    source = Journal(str(fake.command))
    yield fake, source
    source.close()


def some(source: Journal, count: int) -> Batch:
    """Reads until as many have come."""
    until = time.monotonic() + 20
    batch = source.read(99, FAR)
    while len(batch.records) < count and time.monotonic() < until:
        time.sleep(0.01)
        more = source.read(99, FAR)
        batch = Batch(batch.records + more.records, 0, batch.nonsense + more.nonsense, more.more, more.position)
    return batch


def test_the_journal_is_followed_from_a_cursor_on(journal: tuple[FakeJournal, Journal]) -> None:
    fake, source = journal
    first = fake.log(1, "one")
    fake.log(2, "two")
    fake.log(3, None)
    source.open(None)
    fake.log(4, [116, 255])
    batch = some(source, 3)
    assert (texts(batch), batch.nonsense) == (["one", "two", "t\\xff"], 1)
    source.open(Position(-1, 1_000_000, first))
    assert texts(some(source, 2)) == ["two", "t\\xff"]


def test_the_journal_finds_its_place_by_time_where_kmsg_was_read_before(journal: tuple[FakeJournal, Journal]) -> None:
    fake, source = journal
    fake.log(1, "one")
    fake.log(2, "two")
    source.open(Position(7, 1_000_000, ""))
    assert texts(some(source, 1)) == ["two"]


def test_a_storm_in_the_journal_is_read_as_fast_as_it_comes(journal: tuple[FakeJournal, Journal], monkeypatch: pytest.MonkeyPatch) -> None:
    """168,924 lines in a minute are ten times what a pipe holds, each second: a pipeful a tick would be told an hour later."""
    monkeypatch.setattr("collectors.kernel.journal._MORE_SECONDS", 0.5)
    fake, source = journal
    line = {
        "__CURSOR": "s=1",
        "MESSAGE": "NVRM: Xid (PCI:0000:10:00): 45, pid=1",
        "SYSLOG_FACILITY": "0",
        "_SOURCE_MONOTONIC_TIMESTAMP": "1",
    }
    fake.command.write_text(
        f"#!{sys.executable}\nimport sys, time\nfor _ in range(6):\n"
        f"    sys.stdout.write({json.dumps(line) + chr(10)!r} * 500)\n    sys.stdout.flush()\n    time.sleep(0.02)\ntime.sleep(60)\n"
    )
    source.open(None)
    sizes: list[int] = []
    until = time.monotonic() + 20
    while sum(sizes) < 3000 and time.monotonic() < until:
        sizes += filter(None, [len(source.read(9999, FAR).records)])
        time.sleep(0.01)
    assert sum(sizes) == 3000
    assert len(sizes) <= 3, "it pauses six times"


def test_a_journal_that_may_not_be_read_is_said_with_its_remedy(tmp_path: Path) -> None:
    fake = FakeJournal(tmp_path, refusal="No journal files were opened due to insufficient permissions.")
    source = Journal(str(fake.command))

    def look() -> None:
        source.open(None)
        some(source, 1)  # a slow interpreter ends after the first look

    with pytest.raises(Missing, match=r"ended with 1: No journal files .* group systemd-journal"):
        look()
    source.close()


def test_no_journalctl_is_said_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"cannot be run: No such file .*source: kmsg"):
        Journal(str(tmp_path / "journalctl")).open(None)


def test_the_fake_journal_speaks_as_journalctl_does(tmp_path: Path) -> None:
    FakeJournal(tmp_path).log(1, "x")
    assert json.loads((tmp_path / "journal.json").read_text())["_SOURCE_MONOTONIC_TIMESTAMP"] == "1000000"
