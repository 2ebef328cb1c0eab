"""The Faust app around a driver: one agent per input topic, every setting that keeps Faust 0.15.3 from losing or hiding something.

Events are acknowledged by us, after their outputs are, and never by the stream itself: Faust acknowledges an event when its agent is
cancelled or raises, which loses what was in hand. Nothing of Faust's tables, windows, joins, sinks or transactions is used.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import faust
from faust.transport.drivers import aiokafka as driver_aiokafka

from schemas.flow import Partition, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streams.apps.connection import FaustConnection
    from streams.apps.driver import Driver

_COMMIT_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 1.0
_BUFFERED_RECORDS: Final = 500
_NS_PER_MS: Final = 1_000_000


class RewindingConsumer(driver_aiokafka.Consumer):  # type: ignore[misc]  # faust is not typed for us
    """Begins where the app's driver says instead of at the commit."""

    async def perform_seek(self) -> None:
        """Faust calls this after the restore, and whenever it fetched while paused.

        What it believes committed stays the true commit, so that records that are read again never move the commit back.
        """
        places = {tp: self.app.driver.places.get(self.app.partition(tp)) for tp in self.assignment()}
        for tp, place in places.items():
            if place is None:
                continue
            await self._seek(tp, place.next)
            self._read_offset[tp] = None
            self._committed_offset[tp] = place.committed

    def ended(self) -> BaseException | None:
        """What ended the group's coordination: aiokafka logs it and goes on without ever joining again."""
        aio = self._thread._consumer
        task = getattr(getattr(aio, "_coordinator", None), "_coordination_task", None)
        return task.exception() if task is not None and task.done() and not task.cancelled() else None

    async def committed(self) -> dict[Partition, int | None]:
        """The group's commits of the assigned partitions."""
        aio = self._thread._ensure_consumer()
        found: dict[Partition, int | None] = {}
        for tp in self.assignment():
            found[self.app.partition(tp)] = await self._thread.call_thread(aio.committed, tp)
        return found

    def ends(self) -> dict[Partition, tuple[int, int]]:
        """End offset of each assigned partition and when (ns) the broker said so, as far as it did."""
        aio = self._thread._ensure_consumer()
        found: dict[Partition, tuple[int, int]] = {}
        for tp in self.assignment():
            high, at_ms = aio.highwater(tp), aio.last_poll_timestamp(tp)
            if high is not None and at_ms is not None:
                found[self.app.partition(tp)] = high, int(at_ms) * _NS_PER_MS
        return found


class _App(faust.App):  # type: ignore[misc]  # as above
    driver: Driver
    names: Mapping[str, str]

    def partition(self, tp: Any) -> Partition:
        """A partition under our own name of its topic."""
        return Partition(self.names[tp.topic], tp.partition)

    def _new_consumer(self) -> RewindingConsumer:
        self.transport.Consumer = RewindingConsumer
        return super()._new_consumer()  # type: ignore[no-any-return]  # as above


def build(driver: Driver, inputs: Sequence[str], connection: FaustConnection) -> faust.App:
    """The app of one role; it does nothing before a Worker starts it."""
    session = connection.session_timeout_seconds
    app = _App(
        connection.group,
        broker=connection.urls(),
        broker_credentials=connection.credentials(),
        broker_session_timeout=session,
        broker_heartbeat_interval=session / 4,
        broker_commit_interval=_COMMIT_SECONDS,
        consumer_group_instance_id=connection.instance,
        consumer_auto_offset_reset="earliest",
        datadir=str(connection.state_folder),
        store="memory://",
        table_standby_replicas=1,  # without a table this only chooses the co-partitioning assignor
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        # The assignor knows workers by this URL; nothing ever connects to it. A static member gets back the assignment of its former
        # self, and its URL with it: another one there ends the coordinator for good.
        canonical_url=f"http://{connection.instance or uuid.uuid4().hex}:6066",
        autodiscover=False,
        stream_wait_empty=False,
        stream_recovery_delay=0.0,
        stream_buffer_maxsize=_BUFFERED_RECORDS,
        worker_redirect_stdouts=False,
    )
    app.driver = driver
    app.names = {connection.wire(name): name for name in inputs}
    for wire, name in app.names.items():
        _add_agent(app, driver, wire, name)

    @app.on_rebalance_complete.connect  # type: ignore[untyped-decorator]  # as above
    async def restore(*_: Any, **__: Any) -> None:
        if app.consumer.assignment():
            generation = app.consumer_generation_id
            await driver.assign(await app.consumer.committed(), generation)
        else:
            await driver.release()

    @app.task  # type: ignore[untyped-decorator]  # as above
    async def ticks() -> None:
        while not app.should_stop:
            await app.sleep(_TICK_SECONDS)
            if not app.rebalancing and app.consumer.assignment():
                await driver.tick(app.consumer.ends())

    return app


def _add_agent(app: _App, driver: Driver, wire: str, name: str) -> None:
    source = app.topic(wire, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    @app.agent(source, name=name, concurrency=1)  # type: ignore[untyped-decorator]  # as above
    async def each(stream: Any) -> None:
        async for event in stream.noack().events():
            message = event.message
            if await driver.take(_record(name, message), message.generation_id):
                event.ack()


def _record(name: str, message: Any) -> Record:
    timestamp_ns = round((message.timestamp or 0.0) * 1000) * _NS_PER_MS
    pairs = message.headers.items() if isinstance(message.headers, dict) else message.headers or ()
    headers = tuple((name, content or b"") for name, content in pairs)  # Kafka knows headers without a value
    return Record(name, message.partition, message.offset, message.key, message.value, headers, timestamp_ns)
