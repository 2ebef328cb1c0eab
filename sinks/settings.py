"""Settings of the consumers: which store, where it is, how long it keeps what, who is told about alerts."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from schemas.section import Section

DAY_SECONDS = 86_400


def _http_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an http(s) address such as http://127.0.0.1:8086")
    if parts.username or parts.password:
        raise ValueError("credentials do not belong in an address: use the token or secret setting")
    return url.rstrip("/")


class Sqlite(Section):
    """The embedded store: one file, written by one process and read by many."""

    path: Path = Path("xpulse.sqlite")
    """The database file; a relative path is below the state folder."""

    retention_days: float = Field(default=7, gt=0)
    """Points older than this are deleted, in small steps."""

    max_bytes: int = Field(default=2 * 1024**3, ge=4 * 1024**2)
    """Size of the file at which the oldest points are deleted early."""

    synchronous: Literal["normal", "full"] = "normal"
    """full: a batch survives a power failure of the machine; normal: it survives a crash of the process."""


class Influx(Section):
    """InfluxDB 2.x (or what answers /api/v2/write)."""

    url: str = "http://127.0.0.1:8086"
    """Address of the server."""

    org: str = "xpulse"
    """Organisation."""

    bucket: str = "xpulse"
    """Bucket of the raw points."""

    token: SecretStr | None = None
    """Token with read and write on the bucket; from the environment, never in the file."""

    token_file: Path | None = None
    """File that holds the token."""

    gzip_level: int = Field(default=1, ge=0, le=9)
    """0 sends plain text; above 1 costs more time than it saves."""

    batch_lines: int = Field(default=5000, ge=1, le=50_000)
    """Most points of one request."""

    timeout_seconds: float = Field(default=30, gt=0)
    """How long one request may take before the same bytes are sent again."""

    query_timeout_seconds: float = Field(default=20, gt=0)
    """How long a query may take."""

    verify_tls: bool = True
    """Whether the server's certificate is checked."""

    ca_file: Path | None = None
    """Certificate authority of the server, where it is not a public one."""

    retention_days: float = Field(default=7, gt=0)
    """Retention that `xpulse sink influxdb --setup` gives the bucket."""

    _url = field_validator("url")(_http_url)


class Webhook(Section):
    """One receiver of alerts by HTTP POST."""

    url: str
    """Where alerts are posted to, as JSON."""

    headers: dict[str, str] = Field(default_factory=dict)
    """Extra headers; secrets do not belong here."""

    secret: SecretStr | None = None
    """Signs each body: header X-XPulse-Signature is sha256=<HMAC of the body>."""

    secret_file: Path | None = None
    """File that holds the secret."""

    timeout_seconds: float = Field(default=10, gt=0)
    """How long the receiver may take to answer."""

    verify_tls: bool = True
    """Whether the receiver's certificate is checked."""

    ca_file: Path | None = None
    """Certificate authority of the receiver, where it is not a public one."""

    _url = field_validator("url")(_http_url)


class Notify(Section):
    """Who is told when an alert fires or resolves."""

    console: bool = True
    """One line per notification on the notifier's standard output."""

    webhooks: tuple[Webhook, ...] = ()
    """HTTP receivers."""

    min_severity: Literal["info", "warning", "critical"] = "info"
    """What is less severe is not notified."""

    max_age_seconds: float = Field(default=DAY_SECONDS, gt=0)
    """An alert older than this is not notified any more: a new notifier does not report the past."""

    give_up_seconds: float = Field(default=900, gt=0)
    """A receiver that fails for so long gets no more tries for that alert; it goes to the dead letters."""


class Mirror(Section):
    """The JSON copy of the alerts."""

    source: str = "/xpulse"
    """CloudEvents source: this text, then the cluster."""


class Sinks(Section):
    """The consumers of the bus."""

    store: Literal["sqlite", "influxdb"] = "sqlite"
    """Which store the forecaster, the live view and `xpulse query` read."""

    sqlite: Sqlite = Sqlite()
    """The embedded store."""

    influxdb: Influx = Influx()
    """InfluxDB."""

    notify: Notify = Notify()
    """Notifications."""

    mirror: Mirror = Mirror()
    """JSON mirror."""

    identity_tries: int = Field(default=5, ge=0)
    """How often a batch of a device that no inventory knows is tried again, one second apart, before it is stored as `unknown`."""
