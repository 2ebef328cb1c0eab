"""History of every followed inference service: as bad as its worst instance, fed from inference windows, seeded from the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecasting.followed import Followed, Histories
from schemas.identity import service_entity
from schemas.inference import WINDOW_MAX_AGE_NS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from forecasting.targets import Target
    from schemas.telemetry import v1


@dataclass(slots=True)
class _Instances:
    """`newest[(node, pod)] = (end of its newest window, what that said; None: nothing)`."""

    place: str
    newest: dict[tuple[str, str], tuple[int, tuple[float | None, ...]]] = field(default_factory=dict)


class Services(Histories):
    """The service targets among what is followed.

    A service may have instances on many nodes; it is kept under one of them, the first that spoke (or that a standing forecast names:
    `expect`), so that what is said of it always names the same.
    """

    def __init__(self, targets: Sequence[Target], *, step_ns: int, history_steps: int, max_series: int, dropped: Counter[str]) -> None:
        super().__init__(targets, step_ns=step_ns, history_steps=history_steps, max_series=max_series, dropped=dropped)
        self._instances: dict[tuple[str, str], _Instances] = {}

    def expect(self, cluster: str, node: str, entity: str) -> None:
        """A forecast of that service stands, in the name of that node."""
        self._instances.setdefault((cluster, entity), _Instances(node))

    def take(self, window: v1.InferenceWindow) -> None:
        """Append what a window says. One that is older than its instance's newest, or that names no service, is counted and left out."""
        name = window.workload.service or window.workload.workload
        if not name:
            self._dropped["nameless_window"] += 1
            return
        entity = service_entity(window.cluster, window.workload.namespace, name)
        service = self._instances.setdefault((window.cluster, entity), _Instances(window.node))
        instance = (window.node, window.workload.pod or window.workload.container)
        at_ns = window.ended_at_ns
        if at_ns <= service.newest.get(instance, (0,))[0]:
            self._dropped["old_window"] += 1
            return
        one = self._found(window.cluster, service.place, entity, "", simulated=window.simulated)
        if one is None:
            return
        said = tuple(float(getattr(window, t.metric)) if window.HasField(t.metric) else None for t in self.targets)
        service.newest[instance] = (at_ns, said)
        for other, (ended_ns, _) in list(service.newest.items()):
            if at_ns - ended_ns > WINDOW_MAX_AGE_NS:
                del service.newest[other]
        rows, values = [], []
        for index, target in enumerate(self.targets):
            known = [target.sign * value for _, told in service.newest.values() if (value := told[index]) is not None]
            if known:
                rows.append(one.row + index)
                values.append(target.sign * max(known))
        self._put(rows, at_ns, values)

    def seed_service(self, cluster: str, node: str, entity: str) -> Followed | None:
        """The service of that name; `node` only where it is new."""
        return self._found(cluster, self._instances.setdefault((cluster, entity), _Instances(node)).place, entity, "")

    def forget(self, keep: Callable[[str, str], bool]) -> None:
        super().forget(keep)
        self._instances = {key: those for key, those in self._instances.items() if keep(key[0], those.place)}

    def _remove(self, those: dict[str, Followed], entity: str) -> None:
        self._instances.pop((those[entity].cluster, entity), None)
        super()._remove(those, entity)
