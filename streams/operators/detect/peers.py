"""Compares the devices of a node with one another: who does less, is slower, or warmer than its like under like load, for minutes.

Like load is: devices of one model and power limit, whole (no partitions), busy, and within a narrow band of each other in utilisation.
Utilisation alone says little of what is computed, so devices that are not known to do the same work must be alike in their activity
too. Devices of one instance (a tensor-parallel group) are meant to do the same: there activity itself may differ, and one that waits
for nothing while the others do is the odd one. Clocks do not follow load: busy devices that give no reason to be throttled compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]


class Feature(NamedTuple):
    """A metric that is compared; it varies among well devices by at least `relative` × its median or `absolute`, one deviation each."""

    metric: str
    relative: float = 0.0
    absolute: float = 0.0


FEATURES: Final = (
    Feature("power_watts", relative=0.04),
    Feature("sm_clock_hertz", relative=0.03),
    Feature("temperature_celsius", absolute=2.0),
    Feature("memory_temperature_celsius", absolute=2.0),
    Feature("sm_active_ratio", relative=0.06),
    Feature("tensor_active_ratio", relative=0.06),
    Feature("dram_active_ratio", relative=0.06),
)
"""Floors: boards of one model differ by some 5 % in power and clock at the same work, and by 5 °C from front to back of a chassis."""

NAMES: Final = tuple(f.metric for f in FEATURES)
LOAD: Final = "utilization_ratio"
LIMIT: Final = "power_limit_watts"
REASONS: Final = "throttle_reasons"
METRICS: Final = (*NAMES, LOAD, LIMIT, REASONS)
"""What a point says of a device, in this order; the last is whether it is throttled, idle apart."""
AVERAGED: Final = (*NAMES, LOAD)

_F: Final = len(FEATURES)
_CLOCK: Final = NAMES.index("sm_clock_hertz")
_ACTIVITY: Final = [i for i, name in enumerate(NAMES) if name.endswith("_active_ratio")]
_RELATIVE: Final = np.array([f.relative for f in FEATURES])
_ABSOLUTE: Final = np.array([f.absolute for f in FEATURES])
_IDLE_BIT: Final = 1 << v1.ThrottleReason.THROTTLE_REASON_IDLE

MAD_TO_SIGMA: Final = 1.4826
MOST_DEVIATIONS: Final = 3.0
"""A point counts for at most so many times the boundary, so that one of them crosses nothing."""
COMPANIONS_RATIO: Final = 0.25
"""Share of its like that may sit where the odd one sits: more, and there are two kinds of work, not an odd one."""


@dataclass(frozen=True, slots=True)
class Peers:
    """`point_seconds`: what is averaged before it is compared. `group`: least devices, the one itself included. `load_band`: most
    difference of utilisation and activity, `busy`: least utilisation of what is compared. `sustain_seconds`: time constant of the
    average deviation. `limit_sigmas`: average deviation that scores 0.5. `max_age_seconds`: how long it is held uncompared."""

    point_seconds: float = 10.0
    group: int = 4
    load_band: float = 0.05
    busy: float = 0.2
    sustain_seconds: float = 90.0
    limit_sigmas: float = 5.0
    max_age_seconds: float = 60.0
    forget_seconds: float = 600.0


class Place(NamedTuple):
    """What a device is, for comparing: `group` (node and model, -1: compared with none), and numbers of the work on it, 0 where unknown."""

    group: int
    workload: int
    instance: int


def define(table: Table) -> None:
    """The last point, the average deviation of each feature, and what the like did."""
    table.define("peer_mean", np.float32, np.nan, len(METRICS))
    table.define("peer_samples", np.int32, 0)
    table.define("peer_deviation", np.float64, np.nan, _F)
    table.define("peer_at_ns", np.int64, 0, _F)
    table.define("peer_low", np.float32, np.nan, _F)
    table.define("peer_high", np.float32, np.nan, _F)


def point(means: Floats, limit: Floats, reasons: Floats) -> Floats:
    """What is compared (n, METRICS): `means` (n, features and load) of a point; power limit, and whether it is throttled, as of now."""
    known = ~np.isnan(reasons)
    throttled = (np.where(known, reasons, 0.0).astype(np.int64) & ~_IDLE_BIT) > 0
    return np.column_stack((means, limit, np.where(known, throttled, np.nan)))


def compare(
    table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], values: Floats, places: Sequence[Place], options: Peers
) -> None:
    """Compares devices by a point (n, METRICS), each with the others of its group."""
    table["peer_mean"][rows] = values
    groups = np.array([p.group for p in places])
    mine = np.flatnonzero(groups >= 0)
    if len(mine) < options.group:
        return
    order = mine[np.argsort(groups[mine], kind="stable")]
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    nth = np.arange(len(order)) - np.repeat(starts, sizes)
    which = np.repeat(np.arange(len(starts)), sizes)
    # (groups, devices): positions in `rows`, -1 where a group is smaller
    square = np.full((len(starts), int(sizes.max())), -1)
    square[which, nth] = order
    there = square >= 0
    x = np.where(there[:, :, None], values[square], np.nan)
    work = np.where(there, np.array([p.workload for p in places])[square], 0)
    instance = np.where(there, np.array([p.instance for p in places])[square], 0)
    middle, scale, enough, alone = _deviations(x, work, instance, options)
    deviation = (x[:, :, :_F] - middle) / scale
    ok = enough & ~np.isnan(deviation)
    deviation = np.where(alone, deviation, np.clip(deviation, -1.0, 1.0))
    span = options.limit_sigmas * scale
    those = rows[square[there]]
    _sustain(table, those, at_ns[square[there]], np.where(ok, deviation, np.nan)[there], options)
    # who is not compared this time keeps what was known of its like
    table["peer_low"][those] = np.where(ok[there], (middle - span)[there], table["peer_low"][those])
    table["peer_high"][those] = np.where(ok[there], (middle + span)[there], table["peer_high"][those])


def score(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], options: Peers) -> tuple[Floats, Floats]:
    """Scores (n, features) for below and for above the like; NaN where nothing was compared of late."""
    fresh = at_ns[:, None] - table["peer_at_ns"][rows] <= options.max_age_seconds * 1e9
    deviation = np.where(fresh, table["peer_deviation"][rows], np.nan)
    return as_score(-deviation, options), as_score(deviation, options)


def as_score(deviation: Floats, options: Peers) -> Floats:
    """0-1, 0.5 at the boundary; what lies on the other side scores 0."""
    far = np.where(deviation < 0, 0.0, deviation)
    scored: Floats = far / (far + options.limit_sigmas)
    return scored


def sustained(
    before: Floats, before_ns: NDArray[np.int64], at_ns: NDArray[np.int64], deviation: Floats, options: Peers
) -> tuple[Floats, NDArray[np.int64]]:
    """The average deviation after a point, and when it was last taken: (n, features) all; NaN changes nothing."""
    known = ~np.isnan(deviation)
    passed = (at_ns - before_ns) * 1e-9
    old = np.isnan(before) | (passed > options.forget_seconds)
    # a series that begins starts at the like of it: one point is never a habit
    start = np.where(old, 0.0, before)
    passed = np.where(old, options.point_seconds, np.clip(passed, 0.0, 3 * options.point_seconds))
    most = MOST_DEVIATIONS * options.limit_sigmas
    step = -np.expm1(-passed / options.sustain_seconds) * (np.clip(deviation, -most, most) - start)
    return np.where(known, start + step, before), np.where(known, at_ns, before_ns)


def _sustain(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], deviation: Floats, options: Peers) -> None:
    after, at = sustained(table["peer_deviation"][rows], table["peer_at_ns"][rows], at_ns[:, None], deviation, options)
    table["peer_deviation"][rows] = after
    table["peer_at_ns"][rows] = at


def _deviations(
    x: Floats, work: NDArray[np.int64], instance: NDArray[np.int64], options: Peers
) -> tuple[Floats, Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Of (groups, devices, METRICS): median and deviation of each device's like, whether they are enough, and whether it is alone there;
    (groups, devices, features) each."""
    features, load, limit, reasons = x[:, :, :_F], x[:, :, _F], x[:, :, _F + 1], x[:, :, _F + 2]
    other = ~np.eye(x.shape[1], dtype=np.bool_)[None] & _pairs(np.equal, np.nan_to_num(np.rint(limit), nan=-1.0))
    busy = load >= options.busy
    both = busy[:, :, None] & busy[:, None, :] & other
    near = _pairs(lambda a, b: np.abs(a - b) <= options.load_band, load)
    activity = features[:, :, _ACTIVITY]
    apart = np.abs(activity[:, :, None, :] - activity[:, None, :, :])
    alike = (np.nan_to_num(apart) <= options.load_band).all(axis=3) & ~np.isnan(apart).all(axis=3)
    same_work = _pairs(lambda a, b: (a == b) & (a > 0), work)
    together = _pairs(lambda a, b: (a == b) & (a > 0), instance) & busy[:, None, :] & other
    like = (both & near & (same_work | alike)) | together
    free = reasons == 0
    by_feature = np.repeat(like[None], _F, axis=0)
    by_feature[_CLOCK] |= both & free[:, :, None] & free[:, None, :]

    others = np.where(by_feature, np.moveaxis(features, 2, 0)[:, :, None, :], np.nan)
    count = (~np.isnan(others)).sum(axis=3)
    middle = _middle(others, count)
    spread = MAD_TO_SIGMA * _middle(np.abs(others - middle[..., None]), count)
    floor = np.maximum(_RELATIVE[:, None, None] * np.abs(middle), _ABSOLUTE[:, None, None])
    scale = np.maximum(np.maximum(spread, floor), 1e-300)
    beside = np.abs(others - np.moveaxis(features, 2, 0)[..., None]) <= 2.0 * scale[..., None]
    alone = beside.sum(axis=3) <= COMPANIONS_RATIO * count
    return _last(middle), _last(scale), _last(count >= options.group - 1), _last(alone)


def _last(values: NDArray[Any]) -> NDArray[Any]:
    return np.moveaxis(values, 0, 2)


def _pairs(test: Callable[[Any, Any], Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Of (groups, devices): the test of every pair, (groups, devices, devices)."""
    found: NDArray[np.bool_] = test(values[:, :, None], values[:, None, :])
    return found


def _middle(values: Floats, count: NDArray[np.intp]) -> Floats:
    """Median over the last axis of the `count` numbers in it, NaN left out (sorting puts NaN last)."""
    ordered = np.sort(values, axis=-1)
    low = np.take_along_axis(ordered, np.maximum((count - 1) // 2, 0)[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(ordered, np.minimum(count // 2, values.shape[-1] - 1)[..., None], axis=-1)[..., 0]
    middle: Floats = np.where(count > 0, (low + high) / 2.0, np.nan)
    return middle
