"""Settings of the dcgm plugin: which exporters it reads, how often, and what it shows them of itself."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from schemas.section import Section

NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,253}")
"""What a node or a cluster may be called: both are parts of keys."""


class Endpoint(Section):
    """One exporter. A bare address in `endpoints` is the same as {url: address}."""

    url: str
    """Address of the metrics page, http:// or https://."""

    own: bool | None = None
    """It tells of the agent's own node, whatever its page calls it (in Kubernetes that may be the exporter's pod). Empty: it does where
    the address is a loopback one and neither node nor cluster is set."""

    node: str = ""
    """Name of its node, where it is another one. Empty: what the page's label Hostname says."""

    cluster: str = ""
    """Its cluster. Empty: the agent's own."""

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if problem := address_problem(url):
            raise ValueError(problem)
        return url

    @model_validator(mode="after")
    def _one_node(self) -> Endpoint:
        if self.own and (self.node or self.cluster):
            raise ValueError("own is set, and so is node or cluster: keep one")
        for name in (self.node, self.cluster):
            if name and not NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a node or a cluster (letters, digits, . _ : -)")
        return self

    def is_own(self) -> bool:
        """Whether it tells of the agent's own node."""
        return self.own if self.own is not None else not self.node and not self.cluster and loopback(self.url)


class Dcgm(Section):
    """Stands under collectors.plugins.dcgm.settings. The plugin reads what dcgm-exporter (or another exporter of DCGM's names) already
    collects: it opens no profiling session and no driver."""

    endpoints: tuple[Endpoint, ...] = ()
    """Exporters by address; with nothing here and no file_sd it is http://127.0.0.1:9400/metrics."""

    file_sd: tuple[str, ...] = ()
    """Files (or globs) in Prometheus' file_sd form, .json, .yml or .yaml: one place reads the exporters of many nodes. A target's labels
    `node` and `cluster` name its node, `__scheme__` and `__metrics_path__` its page. Read again when they change."""

    interval_seconds: float = Field(default=5.0, ge=0, le=10)
    """Least distance of two reads of one exporter. dcgm-exporter itself looks at the GPUs every 30 s unless it is told otherwise."""

    timeout_seconds: float = Field(default=3.0, gt=0, le=60)
    """How long an exporter may take for its whole answer."""

    retry_max_seconds: float = Field(default=60.0, gt=0, le=3600)
    """An exporter that does not answer is asked again after interval_seconds, then twice as long each time, up to this."""

    frozen_seconds: float = Field(default=300.0, gt=0)
    """GPUs use energy at all times: a page whose energy counters stand still for so long is stale, whatever its health check says."""

    most_bytes: int = Field(default=8 << 20, ge=1024)
    """Largest page that is read, unpacked; the rest of a larger one is left out and counted."""

    workers: int = Field(default=16, ge=1, le=256)
    """How many exporters are read at the same time."""

    bearer_token: SecretStr | None = None
    """Token for every exporter; sent over https or to a loopback address only."""

    bearer_token_file: Path | None = None
    """File with the token; read for each request, so that it may be renewed."""

    username: str = ""
    """User for basic authentication, in place of a token."""

    password: SecretStr | None = None
    """Its password; sent over https or to a loopback address only."""

    password_file: Path | None = None
    """File with the password."""

    ca_file: Path | None = None
    """Certificates of the authority that signed the exporters'; empty: the system's."""

    certificate_file: Path | None = None
    """Certificate that the plugin shows (mutual TLS)."""

    key_file: Path | None = None
    """Key of the certificate, where it is not in the same file."""

    server_name: str = ""
    """Name that the exporters' certificates carry, where it is not the address."""

    verify_tls: bool = True
    """Off: any certificate is taken. For a test only."""

    retry_seconds: float = Field(default=30.0, gt=0)
    """How long to wait before looking again where no exporter answers at all."""

    @field_validator("endpoints", mode="before")
    @classmethod
    def _bare_addresses(cls, value: Any) -> Any:
        many = [value] if isinstance(value, str) else value
        return [{"url": one} if isinstance(one, str) else one for one in many] if isinstance(many, list | tuple) else many

    @field_validator("file_sd", mode="before")
    @classmethod
    def _one_file(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _consistent(self) -> Dcgm:
        token = self.bearer_token is not None or self.bearer_token_file is not None
        password = self.password is not None or self.password_file is not None
        if self.bearer_token is not None and self.bearer_token_file is not None:
            raise ValueError("bearer_token and bearer_token_file are both set: keep one")
        if self.password is not None and self.password_file is not None:
            raise ValueError("password and password_file are both set: keep one")
        if token and (password or self.username):
            raise ValueError("a bearer token and a user are both set: keep one of the two ways")
        if password != bool(self.username):
            raise ValueError("username and password (or password_file) belong together: set both")
        if self.key_file is not None and self.certificate_file is None:
            raise ValueError("key_file without certificate_file: set both")
        for endpoint in self.endpoints:
            if (token or password) and not private(endpoint.url):
                raise ValueError(f"endpoints: {endpoint.url}: a secret would cross the network in the clear; use https://")
        return self

    def chosen(self) -> tuple[Endpoint, ...]:
        """The endpoints, or the usual one where nothing at all is set."""
        return self.endpoints or (() if self.file_sd else (Endpoint(url="http://127.0.0.1:9400/metrics"),))


def address_problem(url: str) -> str:
    """What is wrong with an exporter's address; empty where nothing is."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(not char.isprintable() or char == " " for char in url):
        return f"{url!r} is not an address of a metrics page (http://host:port/metrics)"
    if parts.username is not None or parts.password is not None:
        return "an address must hold no user and no password: use username and password_file"
    return ""


def loopback(url: str) -> bool:
    """Whether an address stays on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def private(url: str) -> bool:
    """Whether a secret may be sent there."""
    return url.startswith("https://") or loopback(url)
