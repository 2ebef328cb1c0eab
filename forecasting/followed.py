"""Who is followed, by node, and the rings of their series: what histories of devices and of services have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.rates import per_minute
from forecasting.rings import Rings, Snapshot

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from forecasting.targets import Target

_MINUTE_SECONDS: Final = 60.0


@dataclass(slots=True)
class Followed:
    """A device or a service; its rows are `row` .. `row + targets - 1`. `limits[name] = (value, until_ns)`.

    `uid` is empty for a service. `shape` counts how often it became another thing under the same name (cut up, resized);
    `shape_seen` is what it was at the last round.
    """

    cluster: str
    node: str
    entity: str
    uid: str
    row: int
    simulated: bool = False
    limits: dict[str, tuple[float, int]] = field(default_factory=dict)
    shape: int = 0
    shape_seen: int = 0

    def limit(self, name: str, at_ns: int) -> float | None:
        """A constant of the device as of `at_ns`; None where it is not known, or was not said for too long."""
        found = self.limits.get(name)
        return found[0] if found is not None and at_ns <= found[1] else None


class Histories:
    """Bounded: `history_steps` per series, `max_series` in all. Counts what it drops."""

    def __init__(self, targets: Sequence[Target], *, step_ns: int, history_steps: int, max_series: int, dropped: Counter[str]) -> None:
        self.targets = tuple(targets)
        self._step_ns = step_ns
        self._width = history_steps
        self._dropped = dropped
        self._nodes: dict[tuple[str, str], dict[str, Followed]] = {}
        self._rings = Rings(len(self.targets), step_ns=step_ns, width=history_steps, most_groups=max_series // len(self.targets))

    def __len__(self) -> int:
        """Devices or services followed."""
        return sum(len(those) for those in self._nodes.values())

    def everybody(self) -> Iterable[Followed]:
        for those in self._nodes.values():
            yield from those.values()

    def find(self, cluster: str, node: str, entity: str) -> Followed | None:
        return self._nodes.get((cluster, node), {}).get(entity)

    def snapshot(self, those: Sequence[Followed], target: int, at_ns: int) -> Snapshot:
        """The rows of one target, each ending at its newest whole step."""
        rows = np.fromiter((one.row + target for one in those), dtype=np.int64, count=len(those))
        shot = self._rings.snapshot(rows, at_ns)
        wanted = self.targets[target]
        if wanted.quantity == "value":
            return shot
        rates = per_minute(shot.values, self._step_ns / 1e9 / _MINUTE_SECONDS, wanted.average_steps)
        return Snapshot(rates, shot.until_ns, rates[:, -1] if len(those) else shot.current)

    def age(self, at_ns: int) -> None:
        """Forget those that said nothing for a whole history."""
        oldest = at_ns // self._step_ns - self._width
        for those in self._nodes.values():
            for entity, one in list(those.items()):
                if self._rings.newest_step(one.row) < oldest and all(until_ns < at_ns for _, until_ns in one.limits.values()):
                    self._remove(those, entity)

    def forget(self, keep: Callable[[str, str], bool]) -> None:
        """Drop the nodes for which `keep(cluster, node)` is false."""
        for place in [place for place in self._nodes if not keep(*place)]:
            those = self._nodes[place]
            for entity in list(those):
                self._remove(those, entity)
            del self._nodes[place]

    def seed(self, one: Followed, target: int, times_ns: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Fill the steps of a target that are not known yet with what the store has; `times_ns` ascending, NaN where it knows nothing."""
        finite = np.isfinite(values)
        for at_ns, value in zip(times_ns[finite].tolist(), values[finite].tolist(), strict=True):
            self._rings.put(one.row + target, at_ns, value, seeding=True)

    def _put(self, rows: Sequence[int], at_ns: int, values: Sequence[float]) -> None:
        if rows:
            late = self._rings.put_all(np.array(rows, dtype=np.int64), at_ns, np.array(values, dtype=np.float64))
            if late:
                self._dropped["too_old"] += late

    def _found(self, cluster: str, node: str, entity: str, uid: str, *, simulated: bool = False) -> Followed | None:
        """The one of that name, made where it is new; None (counted) where there is no room."""
        those = self._nodes.setdefault((cluster, node), {})
        one = those.get(entity)
        if one is not None:
            return one
        row = self._rings.new()
        if row is None:
            self._dropped["max_series"] += 1
            return None
        one = those[entity] = Followed(cluster, node, entity, uid, row, simulated)
        return one

    def _clear(self, one: Followed) -> None:
        self._rings.clear(one.row)

    def _remove(self, those: dict[str, Followed], entity: str) -> None:
        self._rings.release(those.pop(entity).row)
