"""Settings of the OTLP push."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from schemas.section import Section

_HEADER = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"


class Otlp(Section):
    """Metrics push by the OpenTelemetry protocol (docs/guide/otlp.md). Needs the extra `otlp`."""

    enabled: bool = False
    """Push to `endpoint` every `interval_seconds`. Off, it costs no memory."""
    protocol: Literal["grpc", "http"] = "http"
    """`http` (protobuf over HTTP, port 4318 by custom) or `grpc` (port 4317), which takes some 10 MB of memory more."""
    endpoint: str = "http://127.0.0.1:4318"
    """`https://host:port`, or `http://` without TLS. With `http`, a path is used as it is given; without one it is /v1/metrics."""
    interval_seconds: float = Field(10.0, ge=1, le=3600)
    """How often everything that is known is sent."""
    timeout_seconds: float = Field(10.0, ge=0.1, le=300)
    """How long one request may take."""
    max_points: int = Field(2000, ge=1, le=100_000)
    """Most data points in one request: a node of eight GPUs with their links has about 2,000. A gRPC receiver takes 4 MiB by default,
    which some 8,000 points fill."""
    compression: Literal["gzip", "none"] = "gzip"
    """How requests are packed on the wire."""
    queue_bytes: int = Field(4 * 1024 * 1024, ge=64 * 1024, le=1024**3)
    """What may wait in memory, packed, while the endpoint does not answer: the oldest goes first, counted under `queue_full`. Eight GPUs
    at the defaults fill it in about half an hour."""
    retry_min_seconds: float = Field(1.0, ge=0.1, le=60)
    """Wait before the first try again; it doubles with each try. The endpoint's own wish (Retry-After, RetryInfo) is obeyed instead."""
    retry_max_seconds: float = Field(30.0, ge=1, le=600)
    """Longest wait between tries, the endpoint's own wish included."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers of each request (gRPC: metadata), as `authorization: Bearer ...`. Shown nowhere."""
    headers_file: Path | None = None
    """File with one `name: value` a line, read again for every request, so that a token may be exchanged under a running agent."""
    insecure: bool = False
    """Send headers without TLS to another machine: whoever is on the way can read them."""
    ca_file: Path | None = None
    """PEM file of the authorities that may sign the endpoint's certificate; empty: the system's (HTTP) or those gRPC brings."""
    cert_file: Path | None = None
    """PEM file of our own certificate, where the endpoint asks for one; with `key_file`."""
    key_file: Path | None = None
    """PEM file of its key, without a password."""
    resource_attributes: dict[str, str] = Field(default_factory=dict)
    """Further resource attributes (deployment.environment.name ...); they win over ours."""

    @field_validator("headers")
    @classmethod
    def _headers(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, content in value.items():
            check_header(name, content.get_secret_value())
        return value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        parts = urlsplit(self.endpoint)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query or parts.fragment:
            raise ValueError("endpoint must be http://host:port or https://host:port")
        if parts.username is not None or parts.password is not None:
            raise ValueError("endpoint must hold no user or password: put an authorization line into headers_file")
        if self.protocol == "grpc" and parts.path.strip("/"):
            raise ValueError("endpoint must have no path with protocol grpc; for protobuf over HTTP set protocol: http")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together: set both or none")
        if parts.scheme == "http":
            if self.ca_file or self.cert_file:
                raise ValueError("ca_file and cert_file need an endpoint that starts with https://")
            if (self.headers or self.headers_file) and not self.insecure and not _loopback(parts.hostname):
                raise ValueError(
                    "headers would go to another machine without TLS; use https://, or set insecure: true where the network is trusted"
                )
        if self.retry_min_seconds > self.retry_max_seconds:
            raise ValueError(f"retry_min_seconds ({self.retry_min_seconds}) is more than retry_max_seconds ({self.retry_max_seconds})")
        return self

    def url(self) -> str:
        """Where HTTP requests go."""
        return self.endpoint if urlsplit(self.endpoint).path.strip("/") else self.endpoint.rstrip("/") + "/v1/metrics"

    def target(self) -> tuple[str, bool]:
        """gRPC's target, `host:port`, and whether it is reached by TLS."""
        parts = urlsplit(self.endpoint)
        secure = parts.scheme == "https"
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port or (443 if secure else 80)}", secure


def check_header(name: str, value: str) -> None:
    """Raise ValueError for what is no HTTP header; the message never holds the value."""
    if not re.fullmatch(_HEADER, name):
        raise ValueError(f"{name!r} is no name of a header")
    if not value or not value.isascii() or not value.isprintable():
        raise ValueError(f"the value of header {name!r} is empty or has characters that are not printable ASCII")


def _loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
