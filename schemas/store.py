"""The read interface of a store: what the forecaster, the live view and `xpulse query` may ask, whichever store is configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from schemas.values import Reason

Measurement = Literal["device", "usage", "service", "finding", "alert", "forecast", "event"]
Tags = tuple[tuple[str, str], ...]
"""Sorted (name, value) pairs: the identity of a series within its measurement."""

Scalar = float | int | bool | str


@dataclass(frozen=True, slots=True)
class Latest:
    """Newest state of one series: `values[field] = (value, at_ns)`, `absent[field] = reason`; a field never said is in neither."""

    tags: Tags
    at_ns: int
    values: Mapping[str, tuple[Scalar, int]]
    absent: Mapping[str, Reason]


@dataclass(frozen=True, slots=True)
class Series:
    """One field of one series on a grid: `times_ns` int64 (n,), `values` float64 (n,), NaN where nothing (or nothing fresh) is known."""

    tags: Tags
    field: str
    times_ns: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Event:
    """One row of `event`: device and context events."""

    at_ns: int
    kind: str
    tags: Tags
    fields: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """All that was said at one instant of one series, texts too; a repeated field is a JSON list."""

    at_ns: int
    tags: Tags
    fields: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Interval:
    """A workload held a device from `started_at_ns` to `ended_at_ns` (None: still does)."""

    id: str
    cluster: str
    node: str
    uid: str
    namespace: str
    workload: str
    pod: str
    started_at_ns: int
    ended_at_ns: int | None


class Store(Protocol):
    """Both stores pass tests/conformance/store. Filters are equalities on tags; an unknown measurement or field raises KeyError naming it.

    Every call may raise ConnectionError where the store cannot be reached.
    """

    def latest(self, measurement: Measurement, *, where: Mapping[str, str] | None = None, since_ns: int = 0) -> list[Latest]:
        """Newest point per series; absences newer than a value replace it. `since_ns` bounds how far back it looks."""
        ...

    def range(
        self,
        measurement: Measurement,
        fields: Sequence[str],
        *,
        start_ns: int,
        end_ns: int,
        step_ns: int | None = None,
        where: Mapping[str, str] | None = None,
        max_age_ns: int | None = None,
    ) -> list[Series]:
        """Values in [start, end). With `step_ns`: last value at or before each grid point start + i * step, held for at most
        `max_age_ns` (default: the catalogue's for that field; else one step). Without: the raw points."""
        ...

    def rows(self, measurement: Measurement, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Row]:
        """Whole points in [start, end), oldest first, then by tags: for what is read point by point, as forecasts are."""
        ...

    def series(self, measurement: Measurement, *, where: Mapping[str, str] | None = None) -> list[Tags]: ...

    def events(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Event]: ...

    def intervals(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Interval]:
        """Allocations that overlap [start, end)."""
        ...

    def close(self) -> None: ...
