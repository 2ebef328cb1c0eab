"""Fixtures with the real servers; loaded by `pytest_plugins` of the tests' conftest.

What the collected tests need is built after the collection, before the first of them runs: a build takes minutes, and
a test's own time limit would end it. It is tried once; the fixtures then skip or fail with its reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Never, TypeVar

import pytest

from tests.integration.servers import influxdb_build, kafka, otelcol_build
from tests.integration.servers.influxdb import InfluxServer
from tests.integration.servers.kafka import KafkaServer
from tests.integration.servers.otelcol import OtelCollector
from tests.integration.servers.progress import Progress
from tests.integration.servers.server import Server
from tests.integration.servers.toolchain import Missing

REQUIRE = "XPULSE_REQUIRE"
"""The environment variable that lists, with commas, the servers whose absence is a failure: CI sets it."""

BUILDS: dict[str, tuple[frozenset[str], Callable[[Progress], Path]]] = {
    "kafka": (frozenset({"kafka_server", "own_kafka"}), kafka.prepare),
    "influxdb": (frozenset({"influx_server", "own_influx"}), influxdb_build.prepare),
    "otelcol": (frozenset({"own_collector"}), otelcol_build.prepare),
}
"""For each server the fixtures that want it, and what builds it."""

ABSENT = pytest.StashKey[dict[str, Missing]]()

AnyServer = TypeVar("AnyServer", bound=Server)


@pytest.fixture(scope="session")
def kafka_server(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """A real Apache Kafka for the whole session: use topic and group names of your own, and do not kill it."""
    yield from _served(KafkaServer, request.config)


@pytest.fixture(scope="session")
def influx_server(request: pytest.FixtureRequest) -> Iterator[InfluxServer]:
    """A real InfluxDB 2 for the whole session: use measurements or buckets of your own, and do not kill it."""
    yield from _served(InfluxServer, request.config)


@pytest.fixture
def own_kafka(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """A real Apache Kafka of this test's own, which it may kill."""
    yield from _served(KafkaServer, request.config)


@pytest.fixture
def own_influx(request: pytest.FixtureRequest) -> Iterator[InfluxServer]:
    """A real InfluxDB 2 of this test's own, which it may kill."""
    yield from _served(InfluxServer, request.config)


@pytest.fixture
def own_collector(request: pytest.FixtureRequest) -> Iterator[OtelCollector]:
    """A real OpenTelemetry Collector of this test's own, which it may kill; it starts in less than a second."""
    yield from _served(OtelCollector, request.config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the collected tests need."""
    if session.config.option.collectonly:
        return
    used = {fixture for item in session.items for fixture in getattr(item, "fixturenames", ())}
    absent = session.config.stash.setdefault(ABSENT, {})
    for server, (fixtures, prepare) in BUILDS.items():
        if used & fixtures:
            try:
                with _uncaptured(session.config):  # people watch a long build
                    prepare(Progress(server))
            except Missing as missing:
                absent[server] = missing


def is_required(server: str, environ: Mapping[str, str]) -> bool:
    """Whether the absence of this server must fail the tests instead of skipping them."""
    return server in {name.strip() for name in environ.get(REQUIRE, "").split(",")}


def give_up(missing: Missing, environ: Mapping[str, str] = os.environ) -> Never:
    """End a test that cannot have its server: skipped with the reason, failed where the server is required."""
    if is_required(missing.server, environ):
        pytest.fail(f"{missing} ({REQUIRE} asks for it)", pytrace=False)
    pytest.skip(str(missing))


def _served(kind: type[AnyServer], config: pytest.Config) -> Iterator[AnyServer]:
    if missing := config.stash.get(ABSENT, {}).get(kind.name):
        give_up(missing)
    server = kind()
    try:
        server.start()
        yield server
    except Missing as missing:
        give_up(missing)
    finally:
        server.close()


def _uncaptured(config: pytest.Config) -> AbstractContextManager[object]:
    capture = config.pluginmanager.getplugin("capturemanager")
    return nullcontext() if capture is None else capture.global_and_fixture_disabled()
