"""Builds the consumers and the read side from the settings: the one place of composition; each store's code is imported on use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from schemas.section import resolve_secret

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

    from schemas.flow import Processor
    from schemas.store import Store
    from sinks.influxdb.http import Target
    from sinks.points import PointWriter
    from sinks.settings import Influx, Notify, Sinks, Sqlite

SinkName = Literal["sqlite", "influxdb", "notify", "mirror"]
_DAY_NS = 86_400 * 1_000_000_000


def open_sink(name: SinkName, sinks: Sinks, state: Path, *, console: TextIO | None = None) -> Processor:
    """The processor of a sink role. `state` is the state folder; `console` the notifier's stream (default: standard output).

    Raises ValueError for settings that cannot work (a secret file that is not there, a file of a newer release).
    """
    match name:
        case "sqlite" | "influxdb":
            from sinks.store import StoreProcessor

            return StoreProcessor(name, open_writer(name, sinks, state), identity_tries=sinks.identity_tries)
        case "notify":
            return _notifier(sinks.notify, console or sys.stdout)
        case "mirror":
            from sinks.mirror import MirrorProcessor

            return MirrorProcessor(source=sinks.mirror.source)


def open_writer(name: Literal["sqlite", "influxdb"], sinks: Sinks, state: Path) -> PointWriter:
    """The writing side of a store."""
    if name == "sqlite":
        from sinks.sqlite.writer import SqliteWriter

        return SqliteWriter(
            sqlite_path(sinks.sqlite, state),
            retention_ns=int(sinks.sqlite.retention_days * _DAY_NS),
            max_bytes=sinks.sqlite.max_bytes,
            synchronous=sinks.sqlite.synchronous,
        )
    from sinks.influxdb.http import HttpDoor
    from sinks.influxdb.writer import InfluxWriter

    influx = sinks.influxdb
    return InfluxWriter(HttpDoor(influx_target(influx)), where=f"{influx.url} (bucket {influx.bucket})", batch_lines=influx.batch_lines)


def open_store(sinks: Sinks, state: Path) -> Store:
    """The read side of the store that `sinks.store` names; it connects with the first question (ConnectionError)."""
    if sinks.store == "sqlite":
        from sinks.sqlite.store import SqliteStore

        return SqliteStore(sqlite_path(sinks.sqlite, state))
    from sinks.influxdb.store import InfluxStore

    return InfluxStore(influx_target(sinks.influxdb, timeout_seconds=sinks.influxdb.query_timeout_seconds))


def settle_store(sinks: Sinks, state: Path) -> None:
    """Once writer and readers have ended: leave one file of the embedded store, without its log. Nothing for any other store."""
    if sinks.store == "sqlite":
        from sinks.sqlite.schema import settle

        settle(sqlite_path(sinks.sqlite, state))


def sqlite_path(sqlite: Sqlite, state: Path) -> Path:
    """The database file: as set, below the state folder where it is relative."""
    return state / sqlite.path.expanduser()


def influx_target(influx: Influx, *, timeout_seconds: float | None = None) -> Target:
    """Where InfluxDB is, with the token read."""
    from sinks.influxdb.http import Target

    return Target(
        url=influx.url,
        org=influx.org,
        bucket=influx.bucket,
        token=resolve_secret("sinks.influxdb.token", influx.token, influx.token_file),
        gzip_level=influx.gzip_level,
        timeout_seconds=timeout_seconds or influx.timeout_seconds,
        verify_tls=influx.verify_tls,
        ca_file=str(influx.ca_file or ""),
    )


def _notifier(notify: Notify, console: TextIO) -> Processor:
    from sinks.notify.console import Console
    from sinks.notify.processor import NotifyProcessor
    from sinks.notify.webhook import Webhook

    hooks = [
        Webhook(
            hook.url,
            number=i,
            headers=hook.headers,
            secret=resolve_secret(f"sinks.notify.webhooks.{i}.secret", hook.secret, hook.secret_file),
            timeout_seconds=hook.timeout_seconds,
            verify_tls=hook.verify_tls,
            ca_file=str(hook.ca_file or ""),
        )
        for i, hook in enumerate(notify.webhooks)
    ]
    return NotifyProcessor(
        [*([Console(console)] if notify.console else []), *hooks],
        min_severity=notify.min_severity,
        max_age_ns=int(notify.max_age_seconds * 1e9),
        give_up_ns=int(notify.give_up_seconds * 1e9),
    )
