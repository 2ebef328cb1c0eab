"""A node with fake cards and a fake /proc, and the reader of its processes with a clock of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from collectors.nvidia.processes.lists import Instance, Target
from collectors.nvidia.processes.reader import CommandLines, Processes, Taken
from collectors.nvidia.source import Source
from collectors.nvidia.watch.budget import Limits
from collectors.procfs.process import Proc
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import REASON_OF_NUMBER
from tests.fakes import nvml
from tests.fakes.procfs import FakeProc

GIB = 1 << 30
_NAME = {field.number: field.name for field in v1.ProcessSample.DESCRIPTOR.fields}


class Node:
    """Rounds are ten seconds apart. `slow` is what each reading of the clock adds, so that a driver call takes that long."""

    def __init__(self, state: nvml.State, folder: Path, *, host: bool = True) -> None:
        self.state = state
        self.proc = FakeProc(folder, host=host)
        self.at = 1000.0
        self.slow = 0.0
        self.deadline = float("inf")
        self.source = Source()
        self.source.open()
        self.handles = self.source.handles()
        self.mig: dict[int, tuple[Instance, ...]] = {}
        for index in range(2):
            state.processes(index, [])
        self.reader = self.made()

    def made(self, command_lines: CommandLines = "off") -> Processes:
        limits = Limits(interval_seconds=10.0)
        proc = Proc(self.proc.root, ticks_per_second=100)
        self.reader = Processes(self.source, proc, NodeRef("c", "n"), limits, command_lines=command_lines, clock=self.clock)
        return self.reader

    def clock(self) -> float:
        self.at += self.slow
        return self.at

    def use(self, index: int, *processes: dict[str, Any], alive: bool = True) -> None:
        """Who uses the card; alive ones are in /proc too."""
        self.state.processes(index, processes)  # type: ignore[arg-type]  # some are wrong on purpose
        for process in processes if alive else ():
            if not (self.proc.root / str(process["pid"])).exists():
                self.proc.add(process["pid"], ticks=process["pid"])

    def targets(self) -> list[Target]:
        return [
            Target(f"gpu:{i}", f"card {i}", handle, 80 * GIB, i in self.mig, self.mig.get(i, ())) for i, handle in enumerate(self.handles)
        ]

    def take(self, targets: Sequence[Target] | None = None) -> Taken:
        self.at += 10.0
        return self.reader.read(self.targets() if targets is None else targets, at=self.at, now_ns=time.time_ns(), deadline=self.deadline)

    def samples(self) -> list[v1.ProcessSample]:
        taken = self.take()
        assert taken.samples is not None, taken
        return list(taken.samples)


@pytest.fixture
def node(fake_nvml: nvml.State, tmp_path: Path) -> Iterator[Node]:
    """Two H100 that nobody uses yet, on a host whose /proc is whole."""
    made = Node(fake_nvml, tmp_path / "proc")
    yield made
    made.source.close()


@pytest.fixture
def container(fake_nvml: nvml.State, tmp_path: Path) -> Iterator[Node]:
    """The same from inside a PID namespace."""
    made = Node(fake_nvml, tmp_path / "proc", host=False)
    yield made
    made.source.close()


def absent(sample: v1.ProcessSample) -> dict[str, str]:
    return {_NAME[n]: REASON_OF_NUMBER[a.reason] for a in sample.absences for n in a.field_number}


def told(taken: Taken) -> list[tuple[str, str]]:
    return [(event.uid, event.text) for event in taken.events]
