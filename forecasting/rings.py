"""Rows of rings on one grid of steps: the newest value within a step stands for it, a step without one is NaN and never zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`values` is (n, history), NaN where nothing is known, oldest first; `until_ns` (n,) when its last value was taken, 0 where
    there never was one; `current` (n,) the newest value of all."""

    values: NDArray[np.float64]
    until_ns: NDArray[np.int64]
    current: NDArray[np.float64]


class Rings:
    """Rows are handed out in groups of `group`, at most `most_groups`; each keeps `width` steps of `step_ns`."""

    def __init__(self, group: int, *, step_ns: int, width: int, most_groups: int) -> None:
        self._group = group
        self._step_ns = step_ns
        self._width = width
        self._most_rows = most_groups * group
        self._free: list[int] = []
        self._rows = 0
        self._values = np.full((0, width), np.nan)
        self._newest = np.full(0, -1, dtype=np.int64)
        self._at_ns = np.zeros(0, dtype=np.int64)  # when the value of the newest step was taken
        self._before_ns = np.zeros(0, dtype=np.int64)  # and that of the step with a value before it

    def new(self) -> int | None:
        """First row of a group of empty ones; None where there may be no more."""
        if self._free:
            return self._free.pop()
        if self._rows >= self._most_rows:
            return None
        row = self._rows
        self._rows += self._group
        if self._rows > len(self._values):
            more = max(32, self._group, len(self._values))
            self._values = np.concatenate((self._values, np.full((more, self._width), np.nan)))
            self._newest = np.concatenate((self._newest, np.full(more, -1, dtype=np.int64)))
            self._at_ns = np.concatenate((self._at_ns, np.zeros(more, dtype=np.int64)))
            self._before_ns = np.concatenate((self._before_ns, np.zeros(more, dtype=np.int64)))
        return row

    def release(self, first: int) -> None:
        """A group that is needed no more."""
        self.clear(first)
        self._free.append(first)

    def clear(self, first: int) -> None:
        """Forget what a group's rows hold."""
        end = first + self._group
        self._values[first:end] = np.nan
        self._newest[first:end] = -1
        self._at_ns[first:end] = self._before_ns[first:end] = 0

    def newest_step(self, first: int) -> int:
        """Of a group; -1 where it holds nothing."""
        return int(self._newest[first : first + self._group].max())

    def put_all(self, rows: NDArray[np.int64], at_ns: int, values: NDArray[np.float64]) -> int:
        """One value for each of `rows`. The newest of a step stands for it; an older step is only filled, never changed.

        Returns how many were too old to be kept.
        """
        step = at_ns // self._step_ns
        ahead = step - self._newest[rows]
        if (ahead == 1).all():
            self._before_ns[rows] = self._at_ns[rows]
        elif (ahead != 0).any():
            return sum(not self.put(row, at_ns, value) for row, value in zip(rows.tolist(), values.tolist(), strict=True))
        self._values[rows, step % self._width] = values
        self._newest[rows] = step
        self._at_ns[rows] = at_ns
        return 0

    def put(self, row: int, at_ns: int, value: float, *, seeding: bool = False) -> bool:
        """One value; False where it is too old. With `seeding` only what is not known is filled."""
        newest = int(self._newest[row])
        step = at_ns // self._step_ns
        column = step % self._width
        if step > newest:
            if newest >= 0:
                missed = np.arange(max(newest + 1, step - self._width + 1), step)
                self._values[row, missed % self._width] = np.nan
            self._newest[row] = step
            self._before_ns[row], self._at_ns[row] = self._at_ns[row], at_ns
            self._values[row, column] = value
        elif step <= newest - self._width:
            return False
        elif step == newest:
            if not seeding:
                self._values[row, column], self._at_ns[row] = value, max(at_ns, int(self._at_ns[row]))
        elif np.isnan(self._values[row, column]):
            self._values[row, column] = value
            if step == newest - 1:
                self._before_ns[row] = at_ns
        return True

    def snapshot(self, rows: NDArray[np.int64], at_ns: int) -> Snapshot:
        """The rows, each ending at its newest whole step."""
        newest = self._newest[rows]
        current = np.where(newest >= 0, self._values[rows, newest % self._width], np.nan)
        # The newest step is not over: its value stands for less than a step. It serves where the one before has nothing.
        whole = np.isfinite(self._values[rows, (newest - 1) % self._width]) & ((newest + 1) * self._step_ns > at_ns)
        until_ns = np.where(whole, self._before_ns[rows], self._at_ns[rows])
        end = np.where(whole, newest - 1, newest)
        columns = (end[:, None] - np.arange(self._width - 1, -1, -1)) % self._width
        values = self._values[rows[:, None], columns]
        values[whole, 0] = np.nan  # the ring's oldest place holds the newest step already
        return Snapshot(values, until_ns, current)
