"""Holds the last value of every metric of every series, and its recent shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from streams.operators.detect.peers import Place
    from streams.operators.detect.plan import Plan
    from streams.operators.detect.table import Table

RECENT: Final = 30
"""Past values of a shown metric that are kept, RECENT_STEP_NS apart: five minutes are what a person looks at."""
RECENT_STEP_NS: Final = 10_000_000_000

USERS_MAX_AGE_NS: Final = 60_000_000_000
"""Lists of processes come every 10 s."""


class Round(NamedTuple):
    """Values of n different rows. `values` (n, M) is NaN where nothing was said; `absent` (n, M) where it was said that there is none.

    `users` (n,): processes on the device, NaN where no list was read. `places` says what the devices at some positions are, for comparing.
    """

    rows: NDArray[np.intp]
    at_ns: NDArray[np.int64]
    epoch: NDArray[np.int64]
    values: NDArray[np.float64]
    absent: NDArray[np.bool_] | None = None
    users: NDArray[np.float64] | None = None
    places: Callable[[NDArray[np.intp]], Sequence[Place]] | None = None


def define(table: Table, plan: Plan) -> None:
    metrics = len(plan.metrics)
    table.define("held", np.float64, np.nan, metrics)
    table.define("held_at_ns", np.int64, 0, metrics)
    table.define("recent", np.float32, np.nan, RECENT, len(plan.shown))
    table.define("recent_at_ns", np.int64, 0)
    table.define("recent_count", np.int64, 0)
    table.define("users", np.float32, np.nan)
    table.define("users_at_ns", np.int64, 0)


def hold(table: Table, plan: Plan, given: Round) -> NDArray[np.float64]:
    """Takes the values in; returns them as of now, NaN where absent or older than max_age, (n, M + 1): the last column is ones."""
    rows, at = given.rows, given.at_ns[:, None]
    news = given.values == given.values
    if given.absent is not None:
        news |= given.absent
    held = np.where(news, given.values, table["held"][rows])
    held_at = np.where(news, at, table["held_at_ns"][rows])
    table["held"][rows] = held
    table["held_at_ns"][rows] = held_at
    ones = np.ones((len(rows), len(plan.metrics) + 1))
    ones[:, :-1] = np.where(at - held_at > plan.max_age_ns, np.nan, held)
    due = given.at_ns - table["recent_at_ns"][rows] >= RECENT_STEP_NS
    if due.any():
        those = rows[due]
        count = table["recent_count"][those]
        table["recent"][those, count % RECENT] = ones[due][:, plan.shown]
        table["recent_count"][those] = count + 1
        table["recent_at_ns"][those] = given.at_ns[due]
    if given.users is not None and (listed := ~np.isnan(given.users)).any():
        table["users"][rows[listed]] = given.users[listed]
        table["users_at_ns"][rows[listed]] = given.at_ns[listed]
    return ones


def users(table: Table, given: Round) -> NDArray[np.float64]:
    """Processes on each device (n,), NaN where that is not known now."""
    fresh = given.at_ns - table["users_at_ns"][given.rows] <= USERS_MAX_AGE_NS
    known: NDArray[np.float64] = np.where(fresh, table["users"][given.rows], np.nan).astype(np.float64)
    return known


def recent(table: Table, plan: Plan, row: int, metric: int, *, at_ns: int, value: float) -> list[float]:
    """The shape of one metric of one series up to `value` at `at_ns`, oldest first, NaN: not known; empty where it is not kept."""
    shown = int(np.searchsorted(plan.shown, metric))
    if shown == len(plan.shown) or plan.shown[shown] != metric:
        return []
    count = int(table["recent_count"][row])
    ring = table["recent"][row, :, shown]
    past = count - 1 if int(table["recent_at_ns"][row]) == at_ns else count
    return [*(float(ring[k % RECENT]) for k in range(max(0, count - RECENT), past)), value]
