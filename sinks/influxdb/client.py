"""Opens influxdb-client, the only place that knows its arguments; imported with the first query, as it costs 30 MB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from influxdb_client import Dialect, InfluxDBClient

if TYPE_CHECKING:
    from sinks.influxdb.http import Target


def connect(target: Target) -> Any:
    """A client for the target's organisation."""
    return InfluxDBClient(
        url=target.url,
        token=target.token,
        org=target.org,
        timeout=int(target.timeout_seconds * 1000),
        enable_gzip=False,
        verify_ssl=target.verify_tls,
        ssl_ca_cert=target.ca_file or None,
    )


def dialect() -> Any:
    """Annotated CSV with the types of the columns."""
    return Dialect(header=True, delimiter=",", annotations=["datatype"], date_time_format="RFC3339Nano")
