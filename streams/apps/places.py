"""Where a role begins in each partition it was given, and what a commit names that the broker no longer has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from schemas.flow import Partition, Reader
from schemas.status import LostRange

if TYPE_CHECKING:
    from collections.abc import Mapping


class PlaceReader(Reader, Protocol):
    """A Reader that also knows how far partitions reach."""

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The lowest offset there is, and the one that the next record will get."""
        ...

    def timestamps(self, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
        """The broker's time (ns) of the first record at or after each offset; a partition without one is left out."""
        ...


@dataclass(slots=True)
class Place:
    """One owned partition. `next` is the offset to read next; records below `rebuild_until` were committed and only rebuild state.

    `high` is the end of the partition as known at `high_at_ns` (wall clock); `watermark_ns` the newest broker time that was read.
    """

    next: int
    committed: int | None
    rebuild_until: int
    high: int
    high_at_ns: int
    watermark_ns: int | None = None

    @property
    def rebuilding(self) -> bool:
        return self.next < self.rebuild_until

    @property
    def lag(self) -> int:
        return max(0, self.high - self.next)


def find_places(
    reader: PlaceReader, committed: Mapping[Partition, int | None], *, rewind_ns: int, now_ns: int
) -> tuple[dict[Partition, Place], list[LostRange]]:
    """Without a commit: at the lowest offset. With one: there, less `rewind_ns` before the first record that is not done yet (before
    `now_ns` where all is done). A commit beyond the end (the topic was made anew) counts as lost from the end on and begins at the lowest.
    """
    places: dict[Partition, Place] = {}
    lost: list[LostRange] = []
    for partition, commit in committed.items():
        low, high = reader.bounds(*partition)
        start, known = (low, None) if commit is None else (commit, commit)
        if commit is not None and commit < low:
            lost.append(LostRange(*partition, commit, low - 1))
            start = known = low
        elif commit is not None and commit > high:
            lost.append(LostRange(*partition, high, commit - 1))
            start, known = low, None
        places[partition] = Place(start, known, start, high, now_ns)
    behind = {partition: place for partition, place in places.items() if committed[partition] is not None and place.next > 0}
    if rewind_ns and behind:
        first_ns = reader.timestamps({partition: place.next for partition, place in behind.items() if place.lag})
        for partition, place in behind.items():
            since_ns = min(first_ns.get(partition, now_ns), now_ns) - rewind_ns
            place.next = min(place.next, _first_since(reader, partition, max(since_ns, 0), place.next))
    return places, lost


def _first_since(reader: Reader, partition: Partition, since_ns: int, otherwise: int) -> int:
    for record in reader.read(partition.topic, partition.partition, since_ns=since_ns):
        return record.offset
    return otherwise
