"""How a Faust app reaches Kafka, in plain values, and what that is in Faust's own words."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from faust.types.auth import CredentialsT

Protocol = Literal["PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT"]
Mechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]


@dataclass(frozen=True, slots=True)
class FaustConnection:
    """`brokers` is host:port,host:port; `group` the whole name of the consumer group; `prefix` stands before every topic's name.

    `instance` is this process' name in the group for static membership: None on the embedded bus, which ignores it. Files are PEM.
    """

    brokers: str
    group: str
    state_folder: Path
    prefix: str = ""
    embedded: bool = False
    session_timeout_seconds: float = 10.0
    instance: str | None = None
    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    key_password: str | None = field(default=None, repr=False)

    def wire(self, topic: str) -> str:
        """The name on the broker of one of our topics."""
        return self.prefix + topic

    def urls(self) -> str:
        """The brokers as Faust's `broker` setting."""
        return ";".join(f"aiokafka://{address.strip()}" for address in self.brokers.split(","))

    def credentials(self) -> CredentialsT | None:
        """Faust's `broker_credentials`; None for PLAINTEXT. Raises OSError (ssl.SSLError too) on a file that cannot be used."""
        import faust

        match self.protocol:
            case "PLAINTEXT":
                return None
            case "SSL":
                return faust.SSLCredentials(self._tls())
            case "SASL_SSL" | "SASL_PLAINTEXT":
                tls = self._tls() if self.protocol == "SASL_SSL" else None
                return faust.SASLCredentials(username=self.username, password=self.password, mechanism=self.mechanism, ssl_context=tls)

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.cert_file is not None:
            context.load_cert_chain(self.cert_file, self.key_file, self.key_password)
        return context
