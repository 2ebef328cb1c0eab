"""Settings of the bus, and the librdkafka configuration they amount to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, SecretStr, model_validator

from schemas.section import Section

Protocol = Literal["PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT"]
Mechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]

LOCAL_PARTITIONS: Final = 4
"""Partitions of fleet topics on the embedded bus (ARCHITECTURE §5)."""

EMBEDDED_SESSION_SECONDS: Final = 3.0
"""The embedded bus forgets a killed member only after 1.9 × its session (streams.md §9)."""


class Bus(Section):
    """How to reach Kafka, and how our topics and groups are named there."""

    brokers: str = Field("127.0.0.1:9092", min_length=1)
    """Addresses to begin with, `host:port,host:port`."""
    embedded: bool = False
    """The broker is the one inside `xpulse up`: no replication, no static membership, nothing outlives it."""
    topic_prefix: str = Field("", pattern=r"^[A-Za-z0-9._-]*$", max_length=100)
    """Put before every topic's name."""
    group_prefix: str = Field("", pattern=r"^[A-Za-z0-9._-]*$", max_length=100)
    """Put before every consumer group's name."""
    security_protocol: Protocol = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_SSL or SASL_PLAINTEXT."""
    sasl_mechanism: Mechanism | None = None
    """SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN; needed by the SASL protocols."""
    username: str = ""
    """SASL user."""
    password: SecretStr | None = None
    """SASL password."""
    password_file: Path | None = None
    """File with the SASL password."""
    ca_file: Path | None = None
    """PEM file of the authorities that the brokers' certificates are checked against; empty: the system's."""
    cert_file: Path | None = None
    """PEM file of our own certificate (mTLS)."""
    key_file: Path | None = None
    """PEM file of our own private key (mTLS)."""
    key_password: SecretStr | None = None
    """Password of the private key."""
    key_password_file: Path | None = None
    """File with the password of the private key."""
    partitions: int = Field(12, ge=1, le=1000)
    """Partitions of the topics keyed by node; the same for all of them and never changed in place."""
    replication_factor: int = Field(3, ge=1, le=9)
    """Copies of each partition that `topics create` asks for."""
    min_insync_replicas: int = Field(2, ge=1, le=9)
    """Copies that must have a message before it counts as written."""
    session_timeout_seconds: float = Field(10.0, ge=1, le=1800)
    """How long a silent group member keeps its partitions."""
    instance_ordinal: int = Field(0, ge=0)
    """Number of this process among those of its role, for static membership: a restart takes its own partitions back at once."""
    linger_ms: int = Field(5, ge=0, le=5000)
    """How long the agent's producer waits to fill a batch (roles send as soon as they have a batch)."""
    compression: Literal["lz4", "zstd", "gzip", "snappy", "none"] = "lz4"
    """How producers compress."""
    queue_bytes: int = Field(32 * 1024 * 1024, ge=1024 * 1024, le=1024**3)
    """What a producer holds at most of messages that no broker has acknowledged yet."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        sasl, tls = self.security_protocol.startswith("SASL"), self.security_protocol.endswith("SSL")
        credentials = [k for k in ("sasl_mechanism", "username", "password", "password_file") if getattr(self, k)]
        tls_files = [k for k in ("ca_file", "cert_file", "key_file", "key_password", "key_password_file") if getattr(self, k)]
        if self.password and self.password_file:
            raise ValueError("bus.password and bus.password_file are both set; keep one")
        if self.key_password and self.key_password_file:
            raise ValueError("bus.key_password and bus.key_password_file are both set; keep one")
        if sasl:
            wanted = {
                "sasl_mechanism": self.sasl_mechanism,
                "username": self.username,
                "password (or password_file)": self.password or self.password_file,
            }
            if missing := [key for key, value in wanted.items() if not value]:
                raise ValueError(f"bus.security_protocol is {self.security_protocol} and needs bus.{', bus.'.join(missing)}")
        elif credentials:
            raise ValueError(
                f"bus.{credentials[0]} has no effect with bus.security_protocol: {self.security_protocol}; set SASL_SSL or remove it"
            )
        if tls_files and not tls:
            raise ValueError(
                f"bus.{tls_files[0]} has no effect with bus.security_protocol: {self.security_protocol}; set SSL or SASL_SSL, or remove it"
            )
        if bool(self.cert_file) != bool(self.key_file):
            has, lacks = ("cert_file", "key_file") if self.cert_file else ("key_file", "cert_file")
            raise ValueError(f"bus.{has} is set and bus.{lacks} is not; mTLS needs both")
        if (self.key_password or self.key_password_file) and not self.key_file:
            raise ValueError("bus.key_password has no effect without bus.key_file; set it or remove the password")
        if self.min_insync_replicas > self.replication_factor:
            raise ValueError(
                f"bus.min_insync_replicas ({self.min_insync_replicas}) is more than bus.replication_factor ({self.replication_factor}); "
                "nothing could ever be written: lower it"
            )
        return self

    def wire(self, topic: str) -> str:
        """The name on the broker of one of our topics."""
        return self.topic_prefix + topic

    def group(self, role: str) -> str:
        """The consumer group of a role."""
        return f"{self.group_prefix}xpulse.{role}"

    def session_seconds(self) -> float:
        """How long a silent member keeps its partitions on this bus."""
        return EMBEDDED_SESSION_SECONDS if self.embedded else self.session_timeout_seconds

    def partitions_of(self, fixed: int | None) -> int:
        """How many partitions a topic has here; `fixed` as in schemas.topics (None: the fleet's count)."""
        return fixed if fixed is not None else LOCAL_PARTITIONS if self.embedded else self.partitions


def secret(value: SecretStr | None, file: Path | None, key: str) -> str | None:
    """A secret from its setting or its file (without the line end). Raises ValueError naming key and file."""
    if value is not None:
        return value.get_secret_value()
    if file is None:
        return None
    try:
        found = file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"bus.{key}_file: {file} cannot be read ({error}); give a readable UTF-8 file") from None
    if not found:
        raise ValueError(f"bus.{key}_file: {file} is empty; write the secret into it")
    return found


def security(bus: Bus) -> dict[str, str]:
    """The security settings in librdkafka's names; empty for PLAINTEXT. Raises ValueError on a file that cannot be read."""
    if bus.security_protocol == "PLAINTEXT":
        return {}
    found: dict[str, str] = {"security.protocol": bus.security_protocol}
    if bus.security_protocol.startswith("SASL"):
        found |= {
            "sasl.mechanism": bus.sasl_mechanism or "",
            "sasl.username": bus.username,
            "sasl.password": secret(bus.password, bus.password_file, "password") or "",
        }
    for key, option in (("ca_file", "ssl.ca.location"), ("cert_file", "ssl.certificate.location"), ("key_file", "ssl.key.location")):
        path: Path | None = getattr(bus, key)
        if path is None:
            continue
        if not path.is_file():
            raise ValueError(f"bus.{key}: {path} does not exist or is no file; give the path of a PEM file")
        found[option] = str(path)
    if (password := secret(bus.key_password, bus.key_password_file, "key_password")) is not None:
        found["ssl.key.password"] = password
    return found


def librdkafka_config(bus: Bus) -> dict[str, Any]:
    """What every client of ours has in common: addresses, security, patience. Raises ValueError naming the key of a bad file."""
    return {
        "bootstrap.servers": bus.brokers,
        "client.id": "xpulse",
        "socket.keepalive.enable": True,
        "reconnect.backoff.ms": 100,
        # A bus that comes back is found within two seconds (librdkafka's default lets it grow to ten).
        "reconnect.backoff.max.ms": 2000,
        "allow.auto.create.topics": False,
        "log.connection.close": False,
        "log_level": 2,  # errors come by error_cb; a broker that is away would write seventy lines a second
    } | security(bus)
