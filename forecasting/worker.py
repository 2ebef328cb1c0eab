"""The forecast role: samples in; each round screens every series, has the few models fitted elsewhere, and says what will be crossed."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from forecasting.group import Group
from forecasting.pool import open_pool
from forecasting.shared import Shared
from schemas import topics
from schemas.codec import decode, encode
from schemas.flow import DeadLetter, Emitted, Partition, Reader, Record, Rejected, Tick
from schemas.identity import NodeRef, node_key, partition_of, place_key
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecasting.pool import Pool
    from forecasting.scoring.live import Quality
    from forecasting.settings import Forecasting
    from schemas.store import Store

_SEED_TRIES: Final = 10
"""Ticks on which an unreachable store is asked again; then the history comes from samples alone."""

_MOST_BACK_NS: Final = 70 * 60 * 10**9
"""How far back standing forecasts are looked for: one of hourly steps is said again each hour. What is not found expires by itself."""

_MOST_AHEAD_NS: Final = 300 * 10**9
"""A node whose clock is further ahead of the broker's than this is not believed."""


class ForecastProcessor:
    """Implements schemas.flow.Processor. `process` only appends to the history; `tick` starts and collects rounds and never waits for one.

    `store` gives the history from before the start; None begins with nothing. `clock_ns` is asked in `restore` only: how far back
    to look for forecasts that still stand. `dropped` and `events` count, by reason; `forecast_quality` says by metric how good
    the forecasts of the last hours were. Call `close` to end the worker processes.
    """

    role: Final = "forecast"
    inputs: Final = (topics.SAMPLES, topics.INFERENCE)
    rewind_seconds: Final = 0.0
    silent_rebuild: Final = False

    def __init__(
        self, settings: Forecasting, store: Store | None = None, *, clock_ns: Callable[[], int] = time.time_ns, pool: Pool | None = None
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.forecast_quality: dict[str, Quality] = {}
        self._settings = settings
        self._store = store
        self._clock_ns = clock_ns
        self._seeds_left = 0
        self._keeps: Callable[[str, str], bool] = _everything
        pool = pool or open_pool(settings.workers, timeout_seconds=settings.worker_timeout_seconds, events=self.events)
        of_steps = settings.of_steps()
        self._pool = Shared(pool, len(of_steps))
        self._groups = [
            Group(those, self._pool.part(number), dropped=self.dropped, events=self.events, quality=self.forecast_quality)
            for number, those in enumerate(of_steps)
        ]

    @property
    def devices(self) -> int:
        """Devices whose series are followed."""
        return max((len(group.devices) for group in self._groups if group.devices is not None), default=0)

    @property
    def services(self) -> int:
        """Inference services whose series are followed."""
        return max((len(group.services) for group in self._groups if group.services is not None), default=0)

    @property
    def standing(self) -> int:
        """Breach forecasts that stand."""
        return sum(group.rounds.standing_count for group in self._groups)

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """Keep the owned nodes' series, ask the store for the others', and adopt the breach forecasts that may still stand."""
        partitions = reader.partitions(topics.SAMPLES)
        mine = {partition for topic, partition in owned if topic == topics.SAMPLES}

        def keeps(cluster: str, node: str) -> bool:
            return partition_of(node_key(cluster, node), partitions) in mine

        self._keeps = keeps
        for group in self._groups:
            group.forget(keeps)
        self._seeds_left = _SEED_TRIES if self._store is not None and mine else 0
        since_ns = self._clock_ns() - min(2 * max(group.rounds.valid_ns for group in self._groups), _MOST_BACK_NS)
        for partition in range(reader.partitions(topics.FORECASTS)):
            for record in reader.read(topics.FORECASTS, partition, since_ns=since_ns):
                self._adopt(record)

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        """Append to the history; a malformed record is a dead letter."""
        out: list[Emitted] = []
        for record in records:
            try:
                message = decode(record)
            except Rejected as rejected:
                out.append(DeadLetter(record, rejected.reason))
                continue
            if not isinstance(message, v1.SampleBatch | v1.InferenceWindow):
                continue
            at_ns = message.taken_at_ns if isinstance(message, v1.SampleBatch) else message.ended_at_ns
            if at_ns > record.timestamp_ns + _MOST_AHEAD_NS:
                self.dropped["future"] += 1  # one such value would make the true ones that follow look old
                continue
            for group in self._groups:
                group.take(message)
        return out

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        """Collect what the workers have finished; begin a round when one is due."""
        if self._seeds_left:
            self._seed(tick.at_ns)
        said = [found for group in self._groups for found in group.rounds.advance(tick.at_ns)]
        return [encode(topics.FORECASTS, place_key(NodeRef(found.cluster, found.node), found.entity), found) for found in said]

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def _seed(self, at_ns: int) -> None:
        assert self._store is not None
        try:
            for group in self._groups:
                group.seed(self._store, at_ns=at_ns, keeps=self._keeps)
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
            # a metric that is followed no more is anybody's to take back
            next((group for group in self._groups if group.rounds.follows(found.metric)), self._groups[0]).rounds.adopt(found)


def _everything(cluster: str, node: str) -> bool:
    return True
