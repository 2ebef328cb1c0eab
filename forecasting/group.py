"""The targets that share a length of step: the histories of those who are followed for them, and the rounds over these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecasting.rounds import Rounds
from forecasting.seeding import seed_devices, seed_services
from forecasting.series import History
from forecasting.services import Services
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from forecasting.followed import Histories
    from forecasting.pool import Pool
    from forecasting.scoring.live import Quality
    from forecasting.settings import Forecasting
    from schemas.store import Store


class Group:
    """`settings` are those of one step (Forecasting.of_steps). `dropped` and `events` count, by reason and name; `quality` is by
    metric."""

    def __init__(
        self, settings: Forecasting, pool: Pool, *, dropped: Counter[str], events: Counter[str], quality: dict[str, Quality]
    ) -> None:
        self._s = settings
        of_devices = [target for target in settings.targets if not target.of_service]
        of_services = [target for target in settings.targets if target.of_service]
        most = settings.max_series // len(settings.targets)
        step_ns, steps = settings.step_ns, settings.history_steps
        self.devices: History | None = None
        self.services: Services | None = None
        if of_devices:
            self.devices = History(of_devices, step_ns=step_ns, history_steps=steps, max_series=most * len(of_devices), dropped=dropped)
        if of_services:
            self.services = Services(of_services, step_ns=step_ns, history_steps=steps, max_series=most * len(of_services), dropped=dropped)
        self.rounds = Rounds(settings, self._histories(), pool, events, quality)

    def take(self, message: v1.SampleBatch | v1.InferenceWindow) -> None:
        """Append to the histories what a message says."""
        if self.devices is not None and isinstance(message, v1.SampleBatch):
            self.devices.take(message)
        elif self.services is not None and isinstance(message, v1.InferenceWindow):
            self.services.take(message)

    def forget(self, keeps: Callable[[str, str], bool]) -> None:
        """Let go, silently, of the nodes that `keeps(cluster, node)` does not name."""
        for history in self._histories():
            history.forget(keeps)
        self.rounds.forget(keeps)

    def seed(self, store: Store, *, at_ns: int, keeps: Callable[[str, str], bool]) -> None:
        """What the store remembers of one history length up to `at_ns`. Raises ConnectionError."""
        step_ns, steps = self._s.step_ns, self._s.history_steps
        if self.devices is not None:
            seed_devices(self.devices, store, at_ns=at_ns, step_ns=step_ns, history_steps=steps, keeps=keeps)
        if self.services is not None:
            seed_services(self.services, store, at_ns=at_ns, step_ns=step_ns, history_steps=steps, keeps=keeps)

    def _histories(self) -> list[Histories]:
        return [history for history in (self.devices, self.services) if history is not None]
