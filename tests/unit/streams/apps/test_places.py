"""Where a role begins."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from schemas.flow import Partition, Record
from schemas.status import LostRange
from streams.apps.places import find_places
from tests.fakes.log_reader import LogReader

S = 1_000_000_000
HERE = Partition("xpulse.samples", 3)


class Log(LogReader):
    """One partition with a record a second: offsets `low` to `high` - 1, each at its own second."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__({HERE: [Record(*HERE, offset, b"k", b"v", (), offset * S) for offset in range(low, high)]})
        self._bounds = low, high

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        return self._bounds

    def timestamps(self, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
        return {p: next(r.timestamp_ns for r in self.logs[p] if r.offset >= offset) for p, offset in offsets.items()}


@pytest.mark.parametrize(
    ("low", "high", "commit", "rewind", "begins", "rebuild_until", "known", "lost"),
    [
        (0, 500, None, 0, 0, 0, None, []),
        (200, 500, None, 120, 200, 200, None, []),
        (0, 500, 300, 0, 300, 300, 300, []),
        (0, 500, 300, 120, 180, 300, 300, []),
        (250, 500, 300, 120, 250, 300, 300, []),
        (0, 500, 500, 120, 480, 500, 500, []),
        (0, 500, 0, 120, 0, 0, 0, []),
        (400, 500, 300, 120, 400, 400, 400, [LostRange(*HERE, 300, 399)]),
        (0, 10, 300, 120, 0, 0, None, [LostRange(*HERE, 10, 299)]),
    ],
    ids=[
        "no commit",
        "no commit, nothing to rebuild",
        "at the commit",
        "rewound from the first record not done",
        "no further than there is",
        "all done: rewound from now",
        "committed at the start",
        "the commit's records are gone",
        "the topic was made anew",
    ],
)
def test_where_it_begins(
    low: int, high: int, commit: int | None, rewind: int, begins: int, rebuild_until: int, known: int | None, lost: list[LostRange]
) -> None:
    now = 600
    places, found = find_places(Log(low, high), {HERE: commit}, rewind_ns=rewind * S, now_ns=now * S)
    place = places[HERE]
    assert (place.next, place.rebuild_until, place.committed) == (begins, rebuild_until, known)
    assert place.lag == high - begins
    assert found == lost
