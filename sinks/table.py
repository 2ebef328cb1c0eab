"""Many points with the same fields as columns, for writers that can take them so; for all others they are plain points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, overload

from sinks.points import Point, Row

if TYPE_CHECKING:
    from schemas.store import Measurement


@dataclass(frozen=True, slots=True)
class Table:
    """Points of one measurement: `columns` hold the numbers of each field of `names`, all checked as those of a Row are."""

    measurement: Measurement
    names: tuple[str, ...]
    tags: Sequence[tuple[str, ...]]
    times_ns: Sequence[int]
    columns: Sequence[Sequence[float]]

    def __len__(self) -> int:
        return len(self.times_ns)

    def point(self, position: int) -> Point:
        numbers = tuple(column[position] for column in self.columns)
        return Point(self.measurement, self.tags[position], Row(self.names, numbers), self.times_ns[position])

    def __iter__(self) -> Iterator[Point]:
        for tags, time_ns, *numbers in zip(self.tags, self.times_ns, *self.columns, strict=True):
            yield Point(self.measurement, tags, Row(self.names, tuple(numbers)), time_ns)


class Points(Sequence[Point]):
    """Single points, then the rows of tables: positions count through all of them."""

    def __init__(self, single: Sequence[Point], tables: Sequence[Table]) -> None:
        self.single = single
        self.tables = tables

    def __len__(self) -> int:
        return len(self.single) + sum(map(len, self.tables))

    def __iter__(self) -> Iterator[Point]:
        return chain(self.single, *self.tables)

    @overload
    def __getitem__(self, position: int) -> Point: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Point]: ...
    def __getitem__(self, position: int | slice) -> Point | Sequence[Point]:
        if isinstance(position, slice):
            return list(self)[position]
        here = position if position >= 0 else position + len(self)
        if here < 0:
            raise IndexError(position)
        parts: tuple[Sequence[Point] | Table, ...] = (self.single, *self.tables)
        for part in parts:
            if here < len(part):
                return part.point(here) if isinstance(part, Table) else part[here]
            here -= len(part)
        raise IndexError(position)
