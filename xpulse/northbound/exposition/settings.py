"""Settings of the agent's /metrics: where it listens, who may read it, and how DCGM's names are written."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from schemas.section import Section

DCGM_EXPORTER_PORT: Final = 9400


def check_port(port: int | None) -> int | None:
    """Raises ValueError for the port that is dcgm-exporter's."""
    if port == DCGM_EXPORTER_PORT:
        raise ValueError(
            "9400 is the port of dcgm-exporter: whoever came second would fail, and its scrape jobs would read the wrong exporter; "
            "keep 9610 or choose another, and add a scrape job with params: {names: [dcgm]}"
        )
    return port


class Exposition(Section):
    """The agent's endpoint. /metrics gives the catalogue's names, /metrics?names=dcgm those of dcgm-exporter."""

    host: str = ""
    """Address the agent listens on; empty: health.host. Beyond loopback give it a token and TLS as well."""
    port: int | None = Field(None, ge=0, le=65535)
    """Port of the agent; empty: health.port, else 9610. Never 9400, which is dcgm-exporter's."""
    token: SecretStr | None = None
    """Bearer token that /metrics asks for; /healthz, /readyz and /status stay open. Empty: none."""
    token_file: Path | None = None
    """File with the bearer token."""
    cert_file: Path | None = None
    """PEM file of the endpoint's certificate (and its chain): with it and key_file the whole endpoint speaks TLS. A renewed file is
    taken up by itself."""
    key_file: Path | None = None
    """PEM file of the certificate's private key."""
    dcgm_hostname_label: Literal["Hostname", "hostname"] = "Hostname"
    """How ?names=dcgm names the host's label: Hostname as dcgm-exporter always did, hostname as newer releases can."""

    _port = field_validator("port")(check_port)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together; one of them is missing")
        if self.token is not None and self.token_file is not None:
            raise ValueError("token and token_file are both set: keep one")
        return self
