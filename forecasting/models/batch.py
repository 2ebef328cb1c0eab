"""Several clean series side by side: what lets one numpy pass fit them all, where a fit apiece would cost milliseconds each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Batch:
    """`z` (n, w): each row's values less its last one, in units of its range; oldest first, beyond `length` (n,) the last one (0) again.

    `last` and `scale` (n,) lead back to the unit of the series; the scale of a constant series is 1.
    """

    z: NDArray[np.float64]
    length: NDArray[np.int64]
    last: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.length)

    @property
    def rows(self) -> NDArray[np.int64]:
        """(n, 1): each row's number, to index with together with columns."""
        return np.arange(len(self.length))[:, None]

    @property
    def newest(self) -> NDArray[np.int64]:
        """(n, 1): the column of each row's last value."""
        return self.length[:, None] - 1

    @property
    def inside(self) -> NDArray[np.bool_]:
        """(n, w): which columns are values, not what fills the row up."""
        return np.arange(self.z.shape[1]) < self.length[:, None]

    @property
    def constant(self) -> NDArray[np.bool_]:
        out: NDArray[np.bool_] = np.all(self.z == 0, axis=1)
        return out


def gather(series: Sequence[NDArray[np.float64]]) -> Batch:
    """Each of `series`, shape (n_i,), n_i >= 1, finite."""
    length = np.array([y.size for y in series], dtype=np.int64)
    z = np.zeros((len(series), int(length.max(initial=1))))
    last, scale = np.zeros(len(series)), np.ones(len(series))
    for row, y in enumerate(series):
        last[row] = y[-1]
        spread = float(np.ptp(y))
        if spread > 1e-12 * float(np.abs(y).max()):
            scale[row] = spread
            z[row, : y.size] = (y - y[-1]) / spread
    return Batch(z, length, last, scale)


def lines(z: NDArray[np.float64], at: NDArray[np.int64], first: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least-squares lines through columns first .. at of each row of `z` (n, w): (slope per step, value at `at`), shaped as `at` (n, m)."""
    n, width = z.shape
    nothing = np.zeros((n, 1))
    sums = np.concatenate((nothing, np.cumsum(z, axis=1)), axis=1)
    moments = np.concatenate((nothing, np.cumsum(z * np.arange(width), axis=1)), axis=1)
    rows = np.arange(n)[:, None]
    points = at + 1 - first
    middle = (at + first) / 2
    mean = (sums[rows, at + 1] - sums[rows, first]) / points
    moment = moments[rows, at + 1] - moments[rows, first]
    slope = np.where(points > 1, (moment - middle * mean * points) / np.maximum(points * (points**2 - 1) / 12, 0.5), 0.0)
    return slope, mean + slope * (at - middle)


def take(states: NDArray[np.float64], batch: Batch, at: NDArray[np.int64]) -> NDArray[np.float64]:
    """From `states` (w, n, g), one per column, those at `at` (n, m): shape (n, m, g)."""
    out: NDArray[np.float64] = states[at, batch.rows]
    return out
