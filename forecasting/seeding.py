"""Fills the histories at the start from what the store remembers, so that a restart does not begin with an empty memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecasting.series import SHAPE
from schemas.catalogue import BY_NAME
from schemas.identity import service_entity

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from forecasting.series import History
    from forecasting.services import Services
    from schemas.store import Series, Store

_DeviceKey = tuple[str, str, str]


def seed_devices(
    history: History, store: Store, *, at_ns: int, step_ns: int, history_steps: int, keeps: Callable[[str, str], bool]
) -> None:
    """Ask for one history length up to `at_ns`, for the nodes that `keeps(cluster, node)` names. Raises ConnectionError.

    What a device said before it was cut up or resized is another series, and left out.
    """
    start_ns, end_ns = _span(at_ns, step_ns, history_steps)
    begins: dict[_DeviceKey, int] = {}
    for name in SHAPE:
        for series in store.range("device", [name], start_ns=start_ns, end_ns=end_ns, step_ns=step_ns, max_age_ns=BY_NAME[name].max_age_ns):
            begins[_device(series)] = max(begins.get(_device(series), 0), _last_change(series))
    for index, target in enumerate(history.targets):
        for series in store.range("device", [target.metric], start_ns=start_ns, end_ns=end_ns, step_ns=step_ns, max_age_ns=step_ns):
            cluster, node, uid = _device(series)
            if not keeps(cluster, node) or not np.isfinite(series.values).any():
                continue
            device = history.seed_device(cluster, node, uid)
            if device is not None:
                known = np.where(series.times_ns >= begins.get((cluster, node, uid), 0), series.values, np.nan)
                history.seed(device, index, series.times_ns, known)
    # Constants are said once a minute or less: their newest value, wherever in the history it is.
    for latest in store.latest("device", since_ns=start_ns):
        tags = dict(latest.tags)
        device = history.device(tags["cluster"], tags["node"], tags["uid"])
        if device is not None:
            for name in latest.values.keys() & set(history.constants):
                value, said_ns = latest.values[name]
                history.seed_constant(device, name, float(value), said_ns)


def seed_services(
    services: Services, store: Store, *, at_ns: int, step_ns: int, history_steps: int, keeps: Callable[[str, str], bool]
) -> None:
    """The same for services: of all instances on the kept nodes the worst value of each step. Raises ConnectionError."""
    start_ns, end_ns = _span(at_ns, step_ns, history_steps)
    for index, target in enumerate(services.targets):
        worst: dict[tuple[str, str], tuple[str, NDArray[np.int64], NDArray[np.float64]]] = {}
        for series in store.range("service", [target.metric], start_ns=start_ns, end_ns=end_ns, step_ns=step_ns, max_age_ns=step_ns):
            tags = dict(series.tags)
            name = tags.get("service", "")
            if not name or not keeps(tags["cluster"], tags["node"]):
                continue
            key = tags["cluster"], service_entity(tags["cluster"], tags.get("namespace", ""), name)
            signed = target.sign * series.values
            if key in worst:
                signed = np.fmax(worst[key][2], signed)
            worst[key] = tags["node"], series.times_ns, signed
        for (cluster, entity), (node, times_ns, values) in worst.items():
            service = services.seed_service(cluster, node, entity)
            if service is not None:
                services.seed(service, index, times_ns, target.sign * values)


def _span(at_ns: int, step_ns: int, history_steps: int) -> tuple[int, int]:
    end_ns = at_ns // step_ns * step_ns + 1
    return end_ns - 1 - (history_steps - 1) * step_ns, end_ns


def _device(series: Series) -> _DeviceKey:
    tags = dict(series.tags)
    return tags["cluster"], tags["node"], tags["uid"]


def _last_change(series: Series) -> int:
    """Time of the first point after the last change of value; 0 where there was none."""
    known = np.flatnonzero(np.isfinite(series.values))
    changes = np.flatnonzero(np.diff(series.values[known]) != 0)
    return int(series.times_ns[known[changes[-1] + 1]]) if changes.size else 0
