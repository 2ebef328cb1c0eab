"""A table of series: each key has a row in numpy columns that grow geometrically; rows of forgotten keys are used again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import DTypeLike, NDArray

_FIRST_CAPACITY = 64


class Table:
    """Columns of shape (capacity, *shape). Whoever needs a column defines it; a fresh row holds the column's fill value.

    A column of *planes* is (planes, capacity, width): several facts of a series, each a plane of its own in memory, for what goes
    through many series at once.
    """

    __slots__ = ("_fill", "_free", "_planes", "_used", "columns")

    def __init__(self) -> None:
        self.columns: dict[str, NDArray[Any]] = {}
        self._fill: dict[str, Any] = {}
        self._planes: set[str] = set()
        self._free: list[int] = []
        self._used = 0

    def define(self, name: str, dtype: DTypeLike, fill: float | int | bool, *shape: int) -> None:
        """Add a column; ValueError where the name is taken."""
        if name in self.columns:
            raise ValueError(f"column {name!r} is defined twice")
        self.columns[name] = np.full((self.capacity or _FIRST_CAPACITY, *shape), fill, dtype)
        self._fill[name] = fill

    def define_planes(self, name: str, dtype: DTypeLike, fill: float | int | bool, planes: int, width: int) -> None:
        """Add a column of planes; ValueError where the name is taken."""
        if name in self.columns:
            raise ValueError(f"column {name!r} is defined twice")
        self.columns[name] = np.full((planes, self.capacity or _FIRST_CAPACITY, width), fill, dtype)
        self._fill[name] = fill
        self._planes.add(name)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __len__(self) -> int:
        """Rows in use."""
        return self._used - len(self._free)

    @property
    def capacity(self) -> int:
        return next((column.shape[name in self._planes] for name, column in self.columns.items()), 0)

    def new_row(self) -> int:
        """A row that holds fill values in every column."""
        if self._free:
            return self._free.pop()
        if self._used == self.capacity:
            self._grow()
        self._used += 1
        return self._used - 1

    def forget(self, rows: Iterable[int]) -> None:
        """Give rows back; each must be in use."""
        given = list(rows)
        if not given:
            return
        for name, column in self.columns.items():
            if name in self._planes:
                column[:, given] = self._fill[name]
            else:
                column[given] = self._fill[name]
        self._free += given

    def freshen(self, prefix: str, cells: NDArray[np.intp]) -> None:
        """Fill values again in all columns so named, of shape (capacity, width, ...) or planes, at the places `row * width + column`."""
        for name, column in self.columns.items():
            if not name.startswith(prefix):
                continue
            if name in self._planes:
                column.reshape(len(column), -1)[:, cells] = self._fill[name]
            else:
                column.reshape(column.shape[0] * column.shape[1], *column.shape[2:])[cells] = self._fill[name]

    def _grow(self) -> None:
        for name, column in self.columns.items():
            more = np.full_like(column, self._fill[name])
            self.columns[name] = np.concatenate((column, more), axis=int(name in self._planes))
