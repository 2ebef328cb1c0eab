"""Settings of the bus: contradictions name the key and the remedy; librdkafka gets what was set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from xpulse.bus.intake import consumer_config
from xpulse.bus.sending import producer_config
from xpulse.bus.settings import Bus, librdkafka_config

SASL = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "username": "u", "password": "p"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"username": "u"}, "bus.username has no effect with bus.security_protocol: PLAINTEXT; set SASL_SSL"),
        ({"ca_file": "ca.pem"}, "bus.ca_file has no effect"),
        ({"security_protocol": "SASL_SSL"}, "needs bus.sasl_mechanism, bus.username, bus.password"),
        ({**SASL, "password_file": "p"}, "bus.password and bus.password_file are both set; keep one"),
        ({"security_protocol": "SSL", "cert_file": "c"}, "bus.cert_file is set and bus.key_file is not"),
        ({"security_protocol": "SSL", "key_password": "x"}, "no effect without bus.key_file"),
        ({"replication_factor": 1}, "lower it"),
    ],
    ids=["sasl without protocol", "tls without protocol", "protocol without sasl", "two passwords", "half mtls", "no key", "isr"],
)
def test_contradictions_name_key_and_remedy(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said.replace("(", r"\(")):
        Bus(**given)


def test_the_password_is_not_shown() -> None:
    assert "secret-word" not in repr(Bus(**{**SASL, "password": "secret-word"}))


def test_secrets_and_files_reach_librdkafka(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from file\n")
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text("pem")
    given = {**SASL, "password": None, "password_file": tmp_path / "password", "key_password": "k"}
    files = {"ca_file": tmp_path / "ca", "cert_file": tmp_path / "cert", "key_file": tmp_path / "key"}
    config = librdkafka_config(Bus(**given, **files))
    assert config["sasl.password"] == "from file"
    assert config["security.protocol"] == "SASL_SSL"
    assert config["ssl.ca.location"] == str(tmp_path / "ca")
    assert config["ssl.key.password"] == "k"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"bus.ca_file: .*nowhere does not exist"):
        librdkafka_config(Bus(security_protocol="SSL", ca_file=tmp_path / "nowhere"))
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ValueError, match=r"bus.password_file: .* is empty"):
        librdkafka_config(Bus(**{**SASL, "password": None, "password_file": tmp_path / "empty"}))


def test_names_take_their_prefixes() -> None:
    bus = Bus(topic_prefix="eu.", group_prefix="blue-")
    assert bus.wire("xpulse.samples") == "eu.xpulse.samples"
    assert consumer_config(bus, "detect")["group.id"] == "blue-xpulse.detect"


def test_the_embedded_bus_has_short_sessions_and_no_static_members() -> None:
    embedded, kafka = consumer_config(Bus(embedded=True), "alert"), consumer_config(Bus(instance_ordinal=2), "alert")
    assert "group.instance.id" not in embedded
    assert embedded["session.timeout.ms"] == 3000
    assert kafka["group.instance.id"] == "alert-2"
    assert Bus(embedded=True).partitions_of(None) == 4
    assert Bus().partitions_of(None) == 12


def test_producers_partition_as_java_does_and_never_give_up() -> None:
    config = producer_config(Bus())
    assert (config["partitioner"], config["acks"], config["enable.idempotence"], config["message.timeout.ms"]) == (
        "murmur2_random",
        "all",
        True,
        0,
    )
