"""Conditions, durations and ranges as a person would say them."""

from __future__ import annotations

from typing import assert_never

from streams.rules.condition import (
    Above,
    Anomalous,
    Below,
    Beyond,
    BitsSet,
    Bursting,
    Condition,
    Equals,
    Forecasted,
    Ghost,
    Guard,
    Happened,
    Increases,
    Limit,
    RatioAbove,
    Residual,
    Silent,
    Unlike,
)


def seconds(value: float) -> str:
    """`15 s`, `2 min`, `1 h`, `at once` for nothing."""
    if value == 0:
        return "at once"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if value >= size and value % size == 0:
            return f"{value / size:g} {unit}"
    return f"{value:g} s"


def bounds(low: float | None, high: float | None) -> str:
    """A range whose ends may be open."""
    if low is None and high is None:
        return "any"
    return f"{'' if low is None else f'{low:g}'} … {'' if high is None else f'{high:g}'}".strip()


def condition(when: Condition) -> str:
    """A rule's condition in one line."""
    match when:
        case Above():
            return f"`{when.metric}` above {_limit(when.limit)}{_back(when.clear_limit, 'below')}{_guard(when.guard)}"
        case Below():
            return f"`{when.metric}` below {_limit(when.limit)}{_back(when.clear_limit, 'above')}{_guard(when.guard)}"
        case RatioAbove():
            back = "" if when.clear_limit is None else f", until below {when.clear_limit * 100:g} %"
            return f"`{when.metric}` above {when.limit * 100:g} % of `{when.of}`{back}{_guard(when.guard)}"
        case Equals():
            return f"`{when.metric}` is {when.value:g}"
        case Increases():
            more = f"more than {when.more_than:g}" if when.more_than else "anything"
            return f"`{when.metric}` grew by {more} within {seconds(when.within_seconds)}"
        case BitsSet():
            return f"`{when.metric}` has {' or '.join(f'`{bit}`' for bit in when.bits)}"
        case Silent():
            after = "`streams.detect.silence_seconds`" if when.after_seconds is None else seconds(when.after_seconds)
            return f"no samples of the node for {after}"
        case Happened():
            return f"device event {' or '.join(f'`{kind}`' for kind in when.raised_by)}{_which(when)}{_until(when)}"
        case Forecasted():
            likely = f"{when.probability_ratio * 100:g} %"
            way = "fall to" if when.direction == "below" else "cross"
            return f"`{when.metric}` is forecast to {way} its limit within {seconds(when.within_seconds)}, probability at least {likely}"
        case Anomalous():
            return f"one of {_names(when.metrics)} has an anomaly score above {when.score:g}, until below {when.clear_score:g}"
        case Bursting():
            return f"one of {_names(when.counters)} grows with a burst score above {when.score:g}, until below {when.clear_score:g}"
        case Unlike():
            others = "of its node" if when.among == "node" else "of its model on other nodes"
            return (
                f"one of {_names(when.metrics)} is {when.side} that of others {others} under like load, "
                f"score above {when.score:g}, until below {when.clear_score:g}"
            )
        case Beyond():
            least = f" and by {when.least:g} at the least" if when.least else ""
            return (
                f"`{when.metric}` is above what `{when.load}` explains by the device's own past{least}, "
                f"score above {when.score:g}, until below {when.clear_score:g}"
            )
        case Residual():
            return f"{_names(when.metrics)} do not go together, score above {when.score:g}, until below {when.clear_score:g}"
        case Ghost():
            least, unknown = (f"{size / 2**20:g} MiB" for size in (when.memory_below_bytes, when.unknown_memory_below_bytes))
            return (
                f"`utilization_ratio` above {when.busy_above:g} with less than {least} of memory used and no process, "
                f"or less than {unknown} where processes are not known, and no owner"
            )
        case other:
            assert_never(other)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _limit(limit: Limit) -> str:
    if limit.of is None:
        return f"{limit.plus:g}"
    times = "" if limit.times == 1 else f"{limit.times:g} × "
    plus = "" if limit.plus == 0 else f" {'+' if limit.plus > 0 else '−'} {abs(limit.plus):g}"
    return f"{times}`{limit.of}`{plus}"


def _back(limit: Limit | None, side: str) -> str:
    return "" if limit is None else f", until {side} {_limit(limit)}"


def _guard(guard: Guard | None) -> str:
    return "" if guard is None else f", while `{guard.metric}` is above {guard.above:g}"


def _codes(codes: tuple[int, ...]) -> str:
    return f" with code {', '.join(map(str, codes))}" if codes else ""


def _which(when: Happened) -> str:
    parts = [_codes(when.codes)]
    if when.severities:
        parts.append(f" of severity {' or '.join(when.severities)}")
    if when.classes:
        parts.append(f"{' and' if when.severities else ' of'} class {' or '.join(when.classes)}")
    if when.seen_at_least > 1:
        parts.append(f", seen at least {when.seen_at_least} times")
    return "".join(parts)


def _until(when: Happened) -> str:
    ends = [f"`{kind}`" for kind in when.cleared_by]
    if when.cleared_by_sample:
        ends.append("a fresh sample of the device")
    if when.lasts_seconds:
        ends.append(f"{seconds(when.lasts_seconds)} have passed")
    return f", until {' or '.join(ends)}"
