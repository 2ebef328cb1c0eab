"""How much counters grew within a window: resets by epoch told apart from faults, two checkpoints per series instead of a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table


def define(table: Table, width: int) -> None:
    """Columns for `width` counter rules."""
    table.define("counter_last", np.float64, np.nan, width)
    table.define("counter_total", np.float64, 0.0, width)
    table.define("counter_old_total", np.float64, 0.0, width)
    table.define("counter_mid_total", np.float64, 0.0, width)
    table.define("counter_mid_at_ns", np.int64, 0, width)
    table.define("counter_epoch", np.int64, 0, width)
    table.define("counter_grows", np.bool_, False)


def increase(
    table: Table,
    rows: NDArray[np.intp],
    at_ns: NDArray[np.int64],
    epoch: NDArray[np.int64],
    values: NDArray[np.float64],
    within_ns: NDArray[np.int64],
) -> tuple[NDArray[np.float64], int]:
    """Growth of each counter over the last half to whole window, (n, C), and how many counters went back without a new epoch.

    `values` (n, C) is NaN where nothing new was said. The first value of a series is its base. A lower value in a new epoch is a
    reset: what it shows was counted since. In the same epoch it is a fault: the base moves and nothing is added.
    """
    # most rows say nothing new and have no growth that could leave the window: they are not touched
    changed = (values != table["counter_last"][rows]) | (table["counter_epoch"][rows] != epoch[:, None])
    changed &= values == values
    busy = changed.any(axis=1) | table["counter_grows"][rows]
    if busy.all():
        return _increase(table, rows, at_ns, epoch, values, within_ns)
    grown = np.zeros(values.shape)
    if not busy.any():
        return grown, 0
    grown[busy], faults = _increase(table, rows[busy], at_ns[busy], epoch[busy], values[busy], within_ns)
    return grown, faults


def _increase(
    table: Table,
    rows: NDArray[np.intp],
    at_ns: NDArray[np.int64],
    epoch: NDArray[np.int64],
    values: NDArray[np.float64],
    within_ns: NDArray[np.int64],
) -> tuple[NDArray[np.float64], int]:
    last = table["counter_last"][rows]
    total = table["counter_total"][rows]
    said = ~np.isnan(values)
    last_epoch = table["counter_epoch"][rows]
    new_epoch = last_epoch != epoch[:, None]
    delta = values - last
    back = delta < 0
    faults = int(np.count_nonzero(back & ~new_epoch))
    delta = np.where(back, np.where(new_epoch, values, 0.0), delta)
    delta = np.where(np.isnan(delta), 0.0, delta)

    # Two checkpoints, half a window apart, are moved on before the growth is added: one growth is seen for W/2 to W.
    mid_at = table["counter_mid_at_ns"][rows]
    old, mid = table["counter_old_total"][rows], table["counter_mid_total"][rows]
    passed = at_ns[:, None] - mid_at
    due = passed >= within_ns // 2
    old = np.where(due, np.where(passed >= within_ns, total, mid), old)
    mid = np.where(due, total, mid)
    total = total + delta

    table["counter_last"][rows] = np.where(said, values, last)
    table["counter_epoch"][rows] = np.where(said, epoch[:, None], last_epoch)
    table["counter_total"][rows] = total
    table["counter_old_total"][rows] = old
    table["counter_mid_total"][rows] = mid
    table["counter_mid_at_ns"][rows] = np.where(due, at_ns[:, None], mid_at)
    table["counter_grows"][rows] = (total != old).any(axis=1)
    return total - old, faults
