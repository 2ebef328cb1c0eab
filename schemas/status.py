"""How a running role is doing: a plain snapshot that either runner fills and the health pages read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from schemas.flow import Partition


class LostRange(NamedTuple):
    """Offsets `first`..`last` (inclusive) of a partition that the broker no longer had when we came to read them."""

    topic: str
    partition: int
    first: int
    last: int


@dataclass(slots=True)
class RunnerStatus:
    """Written by one runner, read by others; every number counts from the start of the process.

    `assigned` gives each owned partition (unprefixed topic) its lag in records; None where it is not known yet.
    `dropped_total` counts by reason what the processor left out on purpose. `ready` is true once every owned partition is
    restored, and stays true while the role owns none (another process of the same group does the work).
    """

    role: str
    ready: bool = False
    assigned: dict[Partition, int | None] = field(default_factory=dict)
    processed_total: int = 0
    published_total: int = 0
    dead_letters_total: int = 0
    retries_total: int = 0
    rebuilt_total: int = 0
    """Records below the committed offset that were read again to rebuild windowed state."""
    defects_total: int = 0
    """Records that made the processor fail: a fault of ours; each is a dead letter."""
    dropped_total: Counter[str] = field(default_factory=Counter)
    lost_ranges: list[LostRange] = field(default_factory=list)
    foreign_keys_total: int = 0
    """Distinct keys found in a partition where no producer of ours (murmur2) would have put them."""
    trouble: str = ""
    """Why the role does not get on now (a topic is missing, the store is busy), empty while it does."""
    last_success_ns: int = 0
    """Wall clock, ns UTC, of the last records processed and published; 0 before the first."""

    @property
    def lag(self) -> int | None:
        """Records still to read over all owned partitions; None where one of them is not known."""
        lags = list(self.assigned.values())
        return None if None in lags else sum(lag for lag in lags if lag is not None)


@runtime_checkable
class CountsDrops(Protocol):
    """A processor that drops on purpose says how often, by reason; the runner copies it into `dropped_total`."""

    @property
    def dropped(self) -> Counter[str]: ...
