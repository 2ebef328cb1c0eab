"""The forecast role: samples in; each round screens every series, has the few models fitted elsewhere, and says what will be crossed."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from forecasting.pool import open_pool
from forecasting.rounds import Rounds
from forecasting.seeding import seed
from forecasting.series import History
from schemas import topics
from schemas.codec import decode, encode
from schemas.flow import DeadLetter, Emitted, Partition, Reader, Record, Rejected, Tick
from schemas.identity import node_key, partition_of
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecasting.pool import Pool
    from forecasting.settings import Forecasting
    from schemas.store import Store

_SEED_TRIES: Final = 10
"""Ticks on which an unreachable store is asked again; then the history comes from samples alone."""

_MOST_AHEAD_NS: Final = 300 * 10**9
"""A node whose clock is further ahead of the broker's than this is not believed."""


class ForecastProcessor:
    """Implements schemas.flow.Processor. `process` only appends to the history; `tick` starts and collects rounds and never waits for one.

    `store` gives the history from before the start; None begins with nothing. `clock_ns` is asked in `restore` only: how far back
    to look for forecasts that still stand. `dropped` and `events` count, by reason. Call `close` to end the worker processes.
    """

    role: Final = "forecast"
    inputs: Final = (topics.SAMPLES,)
    rewind_seconds: Final = 0.0
    silent_rebuild: Final = False

    def __init__(
        self, settings: Forecasting, store: Store | None = None, *, clock_ns: Callable[[], int] = time.time_ns, pool: Pool | None = None
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self._settings = settings
        self._store = store
        self._clock_ns = clock_ns
        self._seeds_left = 0
        self._keeps: Callable[[str, str], bool] = _everything
        self._history = History(
            [target.metric for target in settings.targets],
            {name for target in settings.targets for name in (target.limit_metric, target.ceiling_metric) if name},
            step_ns=settings.step_ns,
            history_steps=settings.history_steps,
            max_series=settings.max_series,
            dropped=self.dropped,
        )
        pool = pool or open_pool(settings.workers, timeout_seconds=settings.worker_timeout_seconds, events=self.events)
        self._rounds = Rounds(settings, self._history, pool, self.events)

    @property
    def devices(self) -> int:
        """Devices whose series are followed."""
        return len(self._history)

    @property
    def standing(self) -> int:
        """Breach forecasts that stand."""
        return self._rounds.standing_count

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """Keep the owned nodes' series, ask the store for the others', and adopt the breach forecasts that may still stand."""
        partitions = reader.partitions(topics.SAMPLES)
        mine = {partition for topic, partition in owned if topic == topics.SAMPLES}

        def keeps(cluster: str, node: str) -> bool:
            return partition_of(node_key(cluster, node), partitions) in mine

        self._keeps = keeps
        self._history.forget(keeps)
        self._rounds.forget(keeps)
        self._seeds_left = _SEED_TRIES if self._store is not None and mine else 0
        since_ns = self._clock_ns() - 2 * self._rounds.valid_ns
        for partition in range(reader.partitions(topics.FORECASTS)):
            for record in reader.read(topics.FORECASTS, partition, since_ns=since_ns):
                self._adopt(record)

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        """Append to the history; a malformed record is a dead letter."""
        out: list[Emitted] = []
        for record in records:
            try:
                batch = decode(record)
            except Rejected as rejected:
                out.append(DeadLetter(record, rejected.reason))
                continue
            if not isinstance(batch, v1.SampleBatch):
                continue
            if batch.taken_at_ns > record.timestamp_ns + _MOST_AHEAD_NS:
                self.dropped["future"] += 1  # one such value would make the true ones that follow look old
                continue
            self._history.take(batch)
        return out

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        """Collect what the workers have finished; begin a round when one is due."""
        if self._seeds_left:
            self._seed(tick.at_ns)
        return [encode(topics.FORECASTS, found.entity.encode(), found) for found in self._rounds.advance(tick.at_ns)]

    def close(self) -> None:
        """End the worker processes."""
        self._rounds.close()

    def _seed(self, at_ns: int) -> None:
        assert self._store is not None
        try:
            seed(self._history, self._store, self._settings, at_ns=at_ns, keeps=self._keeps)
        except ConnectionError:
            self._seeds_left -= 1
            self.events["store_unreachable"] += 1
            return
        self._seeds_left = 0

    def _adopt(self, record: Record) -> None:
        try:
            found = decode(record)
        except Rejected:
            self.dropped["state_unreadable"] += 1  # whoever consumes the topic writes its dead letter
            return
        if isinstance(found, v1.Forecast) and self._keeps(found.cluster, found.node):
            self._rounds.adopt(found)


def _everything(cluster: str, node: str) -> bool:
    return True
