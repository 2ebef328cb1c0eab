"""What the loop does between its bus and its processor where the bus changes its mind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from schemas.flow import Busy, Emitted, Partition, Reader, Record, Tick
from schemas.status import RunnerStatus
from schemas.topics import SAMPLES
from xpulse.bus import loop
from xpulse.bus.careful import CALM_RECORDS, Careful
from xpulse.bus.intake import Batch
from xpulse.bus.settings import Bus


def batch(*offsets: int) -> Batch:
    records = [Record(SAMPLES, 0, offset, b"k", b"v", (), 1) for offset in offsets]
    return Batch(live=records, upto={(SAMPLES, 0): offsets[-1] + 1})


class Script:
    """An intake that gives prepared batches; before the second one the partitions change, within the same call."""

    def __init__(self, *_: Any, on_change: Callable[[], None], stop: threading.Event, **__: Any) -> None:
        self.places: dict[tuple[str, int], Any] = {}
        self.finished: list[int] = []
        self._on_change, self._stop = on_change, stop
        self._batches = [batch(1), batch(7, 8)]

    def take(self, _timeout_seconds: float) -> Batch:
        if not self._batches:
            self._stop.set()
            return Batch()
        if len(self._batches) == 1:
            self._on_change()
        return self._batches.pop(0)

    def done(self, batch: Batch) -> None:
        self.finished += batch.upto.values()

    def commit(self) -> bool:
        return False

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class BusyOnce:
    role = "detect"
    inputs = (SAMPLES,)
    rewind_seconds = 0.0
    silent_rebuild = False

    def __init__(self) -> None:
        self.seen: list[int] = []
        self._busy = True

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None: ...

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        if self._busy:
            self._busy = False
            raise Busy(60.0, "store away")
        self.seen += [record.offset for record in records]
        return []

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        return []


def test_what_a_new_assignment_brings_while_a_batch_is_held_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "Intake", Script)
    processor = BusyOnce()
    loop.run(processor, Bus(), status=RunnerStatus("detect"), stop=threading.Event(), publish=lambda _: None)
    assert processor.seen == [7, 8]


def test_after_a_defect_records_go_one_at_a_time_until_all_is_calm_again() -> None:
    careful = Careful()
    assert not careful
    careful.failed({("t", 0): 10, ("t", 1): 5})
    careful.passed({("t", 0): 9}, CALM_RECORDS, {("t", 0)})
    assert careful, "partition 0 has one record to go; 1 was given up"
    careful.passed({("t", 0): 10}, CALM_RECORDS - 1, {("t", 0)})
    assert careful
    careful.passed({}, 1, {("t", 0)})
    assert not careful


class Away(BusyOnce):
    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        raise OSError("no space left on device")


def test_what_the_machine_lacks_is_no_defect_of_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "Intake", Script)
    status = RunnerStatus("detect")
    sent: list[Emitted] = []
    with pytest.raises(OSError, match="no space"):
        loop.run(Away(), Bus(), status=status, stop=threading.Event(), publish=sent.extend)
    assert (sent, status.defects_total) == ([], 0)
