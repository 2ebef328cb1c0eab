"""The embedded broker: librdkafka's built-in cluster, started through ctypes on the library that confluent-kafka ships.

It speaks the real Kafka protocol on loopback and keeps at most 5 MiB or 100,000 messages a partition in memory, nothing else: no
compaction, no retention by time, no admin calls (streams.md §6.1). librdkafka binds a free port of its own choice.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import confluent_kafka

from schemas.topics import TOPICS
from xpulse.bus.settings import LOCAL_PARTITIONS

log = logging.getLogger(__name__)

LOCAL_TOPICS: Final[tuple[tuple[str, int], ...]] = tuple(
    (row.name, LOCAL_PARTITIONS if row.partitions is None else row.partitions) for row in TOPICS
)
"""Every topic of ours with its partition count in the local stack."""

_HANDLE: Final = ctypes.c_void_p
_SIGNATURES: Final[tuple[tuple[str, list[Any], Any], ...]] = (
    ("rd_kafka_conf_new", [], _HANDLE),
    ("rd_kafka_conf_set", [_HANDLE, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t], ctypes.c_int),
    ("rd_kafka_new", [ctypes.c_int, _HANDLE, ctypes.c_char_p, ctypes.c_size_t], _HANDLE),
    ("rd_kafka_destroy", [_HANDLE], None),
    ("rd_kafka_mock_cluster_new", [_HANDLE, ctypes.c_int], _HANDLE),
    ("rd_kafka_mock_cluster_destroy", [_HANDLE], None),
    ("rd_kafka_mock_cluster_bootstraps", [_HANDLE], ctypes.c_char_p),
    ("rd_kafka_mock_topic_create", [_HANDLE, ctypes.c_char_p, ctypes.c_int, ctypes.c_int], ctypes.c_int),
    ("rd_kafka_mock_group_initial_rebalance_delay_ms", [_HANDLE, ctypes.c_int32], None),
    ("rd_kafka_mock_broker_set_down", [_HANDLE, ctypes.c_int32], ctypes.c_int),
    ("rd_kafka_mock_broker_set_up", [_HANDLE, ctypes.c_int32], ctypes.c_int),
    ("rd_kafka_mock_partition_delete_records", [_HANDLE, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int64], ctypes.c_int),
)


class EmbeddedBroker:
    """One broker in this process. `topics` are (name on the wire, partitions); `exact` is False where the counts could not be had."""

    def __init__(self, topics: Sequence[tuple[str, int]] = LOCAL_TOPICS) -> None:
        self._topics = tuple(topics)
        self._library: ctypes.CDLL | None = None
        self._client: int | None = None
        self._cluster: int | None = None
        self._fallback: confluent_kafka.Producer | None = None
        self.bootstrap = ""
        self.exact = True

    def start(self) -> None:
        """Start it and create the topics. Raises RuntimeError where librdkafka refuses."""
        library = bundled_library()
        if library is None:
            self._start_fallback()
            return
        self._library = library
        error = ctypes.create_string_buffer(512)
        conf = library.rd_kafka_conf_new()
        # Only the cluster is wanted: the client behind it would warn that it has no address.
        library.rd_kafka_conf_set(conf, b"log_level", b"0", error, len(error))
        self._client = library.rd_kafka_new(0, conf, error, len(error))
        if not self._client:
            raise RuntimeError(f"embedded bus: librdkafka gave no client: {error.value.decode()}")
        self._cluster = library.rd_kafka_mock_cluster_new(self._client, 1)
        if not self._cluster:
            raise RuntimeError("embedded bus: librdkafka gave no cluster; is loopback usable?")
        self.bootstrap = library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
        with _knocking(self.bootstrap):
            for name, partitions in self._topics:
                if code := library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1):
                    raise RuntimeError(f"embedded bus: topic {name} could not be made (librdkafka error {code})")

    def set_reachable(self, reachable: bool) -> None:
        """Close or open the broker's door; what it holds stays. For tests of an outage."""
        call = "rd_kafka_mock_broker_set_up" if reachable else "rd_kafka_mock_broker_set_down"
        with _knocking(self.bootstrap):
            getattr(self._started(), call)(self._cluster, 1)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Forget the records below an offset, as retention does. For tests of lost ranges."""
        with _knocking(self.bootstrap):
            self._started().rd_kafka_mock_partition_delete_records(self._cluster, topic.encode(), partition, offset)

    def close(self) -> None:
        """Stop it; everything it held is gone."""
        if self._library is not None:
            if self._cluster:
                self._library.rd_kafka_mock_cluster_destroy(self._cluster)
            if self._client:
                self._library.rd_kafka_destroy(self._client)
        self._library = self._client = self._cluster = self._fallback = None

    def __enter__(self) -> EmbeddedBroker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> ctypes.CDLL:
        if self._library is None:
            raise RuntimeError("the embedded bus is not started (or runs by its configuration fallback, which has no such control)")
        return self._library

    def _start_fallback(self) -> None:
        log.warning("embedded bus without exact partition counts", extra={"why": "librdkafka of confluent-kafka was not found beside it"})
        self.exact = False
        self._fallback = confluent_kafka.Producer({"test.mock.num.brokers": 1})
        brokers = self._fallback.list_topics(timeout=10).brokers
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers.values())


def bundled_library() -> ctypes.CDLL | None:
    """The librdkafka of confluent-kafka with the functions above declared; None where a wheel lays it out otherwise."""
    package = Path(confluent_kafka.__file__).parent
    places = (package.parent / "confluent_kafka.libs", package / ".dylibs", package)
    for path in (found for place in places for found in sorted(place.glob("librdkafka*")) if found.is_file()):
        try:
            library = ctypes.CDLL(str(path))
            for name, arguments, result in _SIGNATURES:
                function = getattr(library, name)
                function.argtypes, function.restype = arguments, result
        except (OSError, AttributeError):
            continue
        return library
    return None


@contextlib.contextmanager
def _knocking(bootstrap: str) -> Iterator[None]:
    """Connect again and again meanwhile: the cluster's thread (librdkafka 2.16) misses some of the calls that should wake it, and then
    sleeps a second before it serves them; a connection wakes it."""
    host, _, port = bootstrap.rpartition(":")
    done = threading.Event()

    def knock() -> None:
        while not done.wait(0.01):
            with contextlib.suppress(OSError):
                socket.create_connection((host, int(port)), 0.1).close()

    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def serve(ready: Callable[[str], None], stop: threading.Event, topics: Sequence[tuple[str, int]] = LOCAL_TOPICS) -> None:
    """Run a broker until `stop` is set; `ready` is called once with its address."""
    with EmbeddedBroker(topics) as broker:
        ready(broker.bootstrap)
        stop.wait()
