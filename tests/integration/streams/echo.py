"""A processor that repeats what it reads, and a process that runs it under Faust: what the tests of the app drive and kill."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from schemas import topics
from schemas.flow import Busy, DeadLetter, Emitted, Out, Partition, Reader, Record, Tick
from schemas.status import RunnerStatus
from streams.apps.connection import FaustConnection
from streams.apps.run import FaustRunner
from xpulse.bus.producer import AsyncPublisher
from xpulse.bus.reader import BusReader
from xpulse.bus.settings import Bus
from xpulse.process import stop_on_signals

ROLE = "echo"


class Echo:
    """Each record of `xpulse.samples` comes out on `xpulse.usage`; one that says `bad` is a dead letter, `busy` is busy twice."""

    role = ROLE
    inputs = (topics.SAMPLES, topics.ALLOCATIONS)

    def __init__(self, *, rewind_seconds: float = 0.0, silent_rebuild: bool = False, work_seconds: float = 0.0) -> None:
        self.rewind_seconds = rewind_seconds
        self.silent_rebuild = silent_rebuild
        self.restored: list[frozenset[Partition]] = []
        self.seen: list[Record] = []
        self.ticks: list[int] = []
        self._work_seconds = work_seconds
        self._busy = 0

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        self.restored.append(owned)

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        emitted: list[Emitted] = []
        for record in records:
            if record.value == b"busy" and self._busy < 2:
                self._busy += 1
                raise Busy(0.01, "the test says so")
            if record.value == b"defect":
                raise ValueError("the test says so")
            time.sleep(self._work_seconds)
            self.seen.append(record)
            if record.value == b"bad":
                emitted.append(DeadLetter(record, "the test says so"))
            elif record.topic == topics.SAMPLES:
                emitted.append(Out(topics.USAGE, record.key or b"", record.value, record.headers))
        return emitted

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        self.ticks.append(tick.at_ns)
        return []


def runner(processor: Echo, bus: Bus, folder: Path, status: RunnerStatus, stop: threading.Event) -> tuple[FaustRunner, AsyncPublisher]:
    """As the shell puts them together."""
    publisher = AsyncPublisher(bus, bus.group(ROLE))
    connection = FaustConnection(
        brokers=bus.brokers,
        group=bus.group(ROLE),
        state_folder=folder,
        prefix=bus.topic_prefix,
        embedded=bus.embedded,
        session_timeout_seconds=bus.session_seconds(),
        instance=None if bus.embedded else f"{ROLE}-{bus.instance_ordinal}",
    )
    made = FaustRunner(processor, connection, publish=publisher, open_reader=lambda: BusReader(bus, stop=stop), status=status)
    return made, publisher


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("brokers")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embedded", action="store_true")
    parser.add_argument("--work-seconds", type=float, default=0.0)
    parser.add_argument("--prefix", default="")
    options = parser.parse_args()
    bus = Bus(brokers=options.brokers, embedded=options.embedded, topic_prefix=options.prefix, group_prefix=options.prefix)
    stop = stop_on_signals()
    made, publisher = runner(Echo(work_seconds=options.work_seconds), bus, options.folder, RunnerStatus(ROLE), stop)
    made.run(stop)
    publisher.close(0.5)


if __name__ == "__main__":
    main()
