"""A forecast as a store remembers it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from schemas.store import Row, Scalar


class Who(NamedTuple):
    """Whose series: an entity of a cluster; one metric is looked at at a time."""

    cluster: str
    entity: str


@dataclass(frozen=True, slots=True)
class Said:
    """Arrays are (horizon,), one value per step after `until_ns`; empty in a withdrawal, whose reason is `withdrawn`.

    None: it was not said. `probability` is that of the limit being crossed within the horizon.
    """

    who: Who
    node: str
    metric: str
    unit: str
    model: str
    made_at_ns: int
    until_ns: int
    step_ns: int
    valid_until_ns: int
    points: int
    current: float | None
    limit: float | None
    probability: float | None
    p05: NDArray[np.float64]
    p50: NDArray[np.float64]
    p95: NDArray[np.float64]
    withdrawn: str | None = None
    simulated: bool = False

    @property
    def horizon(self) -> int:
        return self.p50.size

    @property
    def complete(self) -> bool:
        """Whether it can be compared with anything."""
        sizes = {self.p05.size, self.p50.size, self.p95.size}
        known = bool(np.isfinite(self.p05).all() and np.isfinite(self.p50).all() and np.isfinite(self.p95).all())
        return self.horizon > 0 and len(sizes) == 1 and self.step_ns > 0 and self.until_ns > 0 and known


def said(row: Row) -> Said:
    """Raises ValueError or TypeError for a row that is none of ours (a foreign producer's)."""
    tags, fields = dict(row.tags), row.fields
    return Said(
        who=Who(tags.get("cluster", ""), tags.get("entity", "")),
        node=tags.get("node", ""),
        metric=tags.get("metric", ""),
        unit=str(fields.get("unit", "")),
        model=str(fields.get("model", "")),
        made_at_ns=row.at_ns,
        until_ns=int(fields.get("history_until_ns", 0)),
        step_ns=int(fields.get("step_ns", 0)),
        valid_until_ns=int(fields.get("valid_until_ns", 0)),
        points=int(fields.get("history_points", 0)),
        current=_number(fields, "current"),
        limit=_number(fields, "limit"),
        probability=_number(fields, "breach_probability_ratio"),
        p05=_array(fields, "p05"),
        p50=_array(fields, "p50"),
        p95=_array(fields, "p95"),
        withdrawn=(str(fields.get("withdrawn_reason", "")) or "receded") if fields.get("withdrawn") else None,
        simulated=bool(fields.get("simulated", False)),
    )


def _number(fields: Mapping[str, Scalar], name: str) -> float | None:
    value = fields.get(name)
    return None if value is None else float(value)


def _array(fields: Mapping[str, Scalar], name: str) -> NDArray[np.float64]:
    text = fields.get(name)
    if text is None:
        return np.empty(0)
    found = np.asarray(json.loads(str(text)), dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"{name} is no list of numbers")
    return found
