"""Fills the history at the start from what the store remembers, so that a restart does not begin with an empty memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecasting.series import History
    from forecasting.settings import Forecasting
    from schemas.store import Store


def seed(history: History, store: Store, settings: Forecasting, *, at_ns: int, keeps: Callable[[str, str], bool]) -> None:
    """Ask for one history length up to `at_ns`, for the nodes that `keeps(cluster, node)` names. Raises ConnectionError."""
    step_ns = settings.step_ns
    end_ns = at_ns // step_ns * step_ns + 1
    start_ns = end_ns - 1 - (settings.history_steps - 1) * step_ns
    metrics = [target.metric for target in settings.targets]
    constants = {name for target in settings.targets for name in (target.limit_metric, target.ceiling_metric) if name}
    for series in store.range("device", metrics, start_ns=start_ns, end_ns=end_ns, step_ns=step_ns, max_age_ns=step_ns):
        tags = dict(series.tags)
        if keeps(tags["cluster"], tags["node"]):
            history.seed(tags["cluster"], tags["node"], tags["uid"], series.field, series.times_ns, series.values)
    # Constants are said once a minute or less: their newest value, wherever in the history it is.
    for latest in store.latest("device", since_ns=start_ns):
        tags = dict(latest.tags)
        if not keeps(tags["cluster"], tags["node"]):
            continue
        for name in constants & latest.values.keys():
            value, said_ns = latest.values[name]
            history.seed_constant(tags["cluster"], tags["node"], tags["uid"], name, float(value), said_ns)
