"""What both stores' read sides share: checked names, absences, the grid of `range`, events and intervals; so that they cannot differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from schemas.catalogue import BY_NAME
from schemas.store import Event, Interval, Latest, Row, Scalar, Series, Tags
from schemas.values import REASONS, Reason
from sinks.measurements import MEASUREMENTS, Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

FULL_MARK: Final = "index"
"""A `device` field that is in every full sample and in no other: a full sample says all, so nothing older is current."""

ALLOCATION: Final = "allocation"
FieldAt = tuple[Scalar, int]


def measurement_of(name: str, where: Mapping[str, str] | None) -> Measurement:
    """The measurement; KeyError names one that does not exist, or a filter that is not one of its tags."""
    found = next((m for key, m in MEASUREMENTS.items() if key == name), None)
    if found is None:
        raise KeyError(f"no measurement {name!r}; there are {', '.join(MEASUREMENTS)}")
    for tag in where or {}:
        if tag not in found.tags:
            raise KeyError(f"{name} has no tag {tag!r} to filter by; its tags are {', '.join(found.tags)}")
    return found


def check_numeric(measurement: Measurement, fields: Sequence[str]) -> None:
    """KeyError for a field that the measurement does not have or that is text."""
    for field in fields:
        kind = measurement.types.get(field)
        if kind is None:
            raise KeyError(f"{measurement.name} has no field {field!r}; `xpulse config show --store` lists them")
        if kind == "string":
            raise KeyError(f"{measurement.name} field {field!r} is text: it has no range; ask latest or events")


def held_ns(measurement: Measurement, field: str, step_ns: int | None, max_age_ns: int | None) -> int:
    """How long a value stands: as asked, else the catalogue's max_age, else one step."""
    if max_age_ns is not None:
        return max_age_ns
    metric = BY_NAME.get(field) if measurement.name == "device" else None
    return metric.max_age_ns if metric is not None else step_ns or 0


def tags_of(measurement: Measurement, values: Sequence[str]) -> Tags:
    """Sorted pairs without the empty ones."""
    return tuple(sorted((name, value) for name, value in zip(measurement.tags, values, strict=True) if value))


def absences(text: str) -> dict[str, Reason]:
    """`field=reason,…` as a mapping; what is not one of our reasons is `error`."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {name: reason if reason in REASONS else "error" for name, _, reason in pairs}


def latest_of(tags: Tags, said: Mapping[str, FieldAt], absent_texts: Iterable[tuple[int, str]]) -> Latest:
    """Newest state of a series from the newest value of each field and the `absent` texts since the last full sample."""
    absent: dict[str, tuple[int, Reason]] = {}
    for at_ns, text in sorted(absent_texts):
        for name, reason in absences(text).items():
            absent[name] = (at_ns, reason)
    values = {n: v for n, v in said.items() if n != "absent" and (n not in absent or v[1] > absent[n][0])}
    missing = {name: reason for name, (_, reason) in absent.items() if name not in values}
    return Latest(tags, max((at for _, at in said.values()), default=0), values, missing)


def grid(
    times_ns: NDArray[np.int64], values: NDArray[np.float64], *, start_ns: int, end_ns: int, step_ns: int, held_ns: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The last value at or before each start + i * step < end, NaN where it is older than `held_ns` or itself NaN (absent).

    `times_ns` must be sorted; it may begin before start.
    """
    import numpy as np

    if step_ns <= 0:
        raise ValueError(f"step_ns {step_ns} must be above 0")
    at = np.arange(start_ns, end_ns, step_ns, dtype=np.int64)
    if not len(times_ns):
        return at, np.full(len(at), np.nan)
    before = np.searchsorted(times_ns, at, side="right") - 1
    last = np.maximum(before, 0)
    fresh = (before >= 0) & (at - times_ns[last] <= held_ns)
    return at, np.where(fresh, values[last], np.nan)


def with_absences(
    times_ns: NDArray[np.int64], values: NDArray[np.float64], field: str, texts: Iterable[tuple[int, str]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The points of a field plus a NaN wherever it was said to be absent; sorted by time."""
    import numpy as np

    gone = np.array([at for at, text in texts if field in absences(text)], dtype=np.int64)
    if not len(gone):
        return times_ns, values
    all_times = np.concatenate([times_ns, gone])
    # a stable sort puts the absence after a value of the same instant
    order = np.argsort(all_times, kind="stable")
    return all_times[order], np.concatenate([values, np.full(len(gone), np.nan)])[order]


def series_of(
    tags: Tags,
    field: str,
    times_ns: NDArray[np.int64],
    values: NDArray[np.float64],
    absent_texts: Sequence[tuple[int, str]],
    start_ns: int,
    end_ns: int,
    step_ns: int | None,
    held_ns: int,
) -> Series | None:
    """The answer of `range` for one field of one series, on the grid where a step was asked; None where it has no point."""
    if not len(times_ns):
        return None
    if step_ns is not None:
        times_ns, values = with_absences(times_ns, values, field, absent_texts)
        times_ns, values = grid(times_ns, values, start_ns=start_ns, end_ns=end_ns, step_ns=step_ns, held_ns=held_ns)
    return Series(tags, field, times_ns, values)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """By time, then by tags: both stores answer alike."""
    return sorted(rows, key=lambda row: (row.at_ns, row.tags))


def events_between(events: Iterable[Event], start_ns: int, end_ns: int) -> list[Event]:
    """Those whose exact time lies in [start, end), oldest first."""
    found = [e for e in events if start_ns <= e.at_ns < end_ns]
    return sorted(found, key=lambda e: (e.at_ns, e.tags, str(e.fields.get("id", ""))))


def event_of(tags: Tags, time_ns: int, fields: Mapping[str, Scalar]) -> Event:
    """An event at its exact time: the stored one is spread within a millisecond."""
    return Event(int(fields.get("at_ns", time_ns)), dict(tags).get("kind", ""), tags, fields)


def intervals_of(events: Iterable[Event], start_ns: int, end_ns: int) -> list[Interval]:
    """Allocations among events that overlap [start, end), oldest first; the newest word about an id counts."""
    newest: dict[str, tuple[int, Interval]] = {}
    for event in events:
        interval = _interval(event)
        seq = int(event.fields.get("seq", 0))
        key = f"{interval.cluster}/{interval.node}/{interval.uid}/{interval.id}"
        if key not in newest or seq >= newest[key][0]:
            newest[key] = (seq, interval)
    found = [i for _, i in newest.values() if i.started_at_ns < end_ns and (i.ended_at_ns is None or i.ended_at_ns > start_ns)]
    return sorted(found, key=lambda i: (i.started_at_ns, i.cluster, i.node, i.uid, i.id))


def _interval(event: Event) -> Interval:
    tags, fields = dict(event.tags), event.fields
    ended = fields.get("ended_at_ns")
    return Interval(
        id=str(fields.get("id", "")),
        cluster=tags.get("cluster", ""),
        node=tags.get("node", ""),
        uid=tags.get("uid", ""),
        namespace=str(fields.get("namespace", "")),
        workload=str(fields.get("workload", "")),
        pod=str(fields.get("pod", "")),
        started_at_ns=int(fields.get("started_at_ns", event.at_ns)),
        ended_at_ns=None if ended is None else int(ended),
    )
