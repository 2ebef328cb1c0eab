"""How the connection's plain values reach Faust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.apps.connection import FaustConnection


def connection(**more: Any) -> FaustConnection:
    return FaustConnection(brokers="a:9092, b:9093", group="xpulse.echo", state_folder=Path("state"), **more)


def test_brokers_become_urls_and_topics_get_the_prefix() -> None:
    made = connection(prefix="site-")
    assert made.urls() == "aiokafka://a:9092;aiokafka://b:9093"
    assert made.wire("xpulse.samples") == "site-xpulse.samples"


def test_plaintext_has_no_credentials() -> None:
    assert connection().credentials() is None


@pytest.mark.parametrize(("protocol", "encrypted"), [("SASL_SSL", True), ("SASL_PLAINTEXT", False)])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_sasl_reaches_aiokafka(protocol: str, encrypted: bool, mechanism: str) -> None:
    from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

    auth = credentials_to_aiokafka_auth(
        connection(protocol=protocol, mechanism=mechanism, username="ann", password="open sesame").credentials()
    )
    assert (auth["security_protocol"], auth["sasl_mechanism"]) == (protocol, mechanism)
    assert (auth["sasl_plain_username"], auth["sasl_plain_password"]) == ("ann", "open sesame")
    assert (auth["ssl_context"] is not None) is encrypted


def test_tls_checks_the_brokers_certificate() -> None:
    import ssl

    from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

    auth = credentials_to_aiokafka_auth(connection(protocol="SSL").credentials())
    assert auth["security_protocol"] == "SSL"
    assert auth["ssl_context"].verify_mode == ssl.CERT_REQUIRED
    assert auth["ssl_context"].check_hostname


def test_a_missing_file_is_an_error_and_not_ignored() -> None:
    with pytest.raises(OSError, match="No such file"):
        connection(protocol="SSL", ca_file=Path("no-such-authority.pem")).credentials()


def test_secrets_are_not_shown() -> None:
    assert "sesame" not in repr(connection(password="open sesame", key_password="sesame"))
