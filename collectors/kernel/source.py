"""What a source of kernel records is: opened behind a position, read in batches, and honest about what was lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from collectors.kernel.record import Record


class Missing(Exception):
    """The log cannot be read; the text says what, where and the remedy."""


class Position(NamedTuple):
    """How far a boot's log was read. Either source finds its place by its own number, and by the time where the other one wrote it."""

    sequence: int
    monotonic_us: int
    cursor: str


@dataclass(frozen=True, slots=True)
class Batch:
    """`lost` records were overwritten before they were read, `nonsense` could not be understood; `more` are waiting."""

    records: list[Record]
    lost: int
    nonsense: int
    more: bool
    position: Position | None


class Source(Protocol):
    """`open` raises Missing. `read` never waits."""

    @property
    def name(self) -> str: ...

    def open(self, after: Position | None) -> None: ...

    def read(self, most: int, deadline: float) -> Batch: ...

    def close(self) -> None: ...
