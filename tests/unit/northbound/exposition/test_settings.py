"""What the endpoint's settings refuse, and what is said of one that the network reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from xpulse.errors import UsageError
from xpulse.health import Report
from xpulse.listener import said
from xpulse.northbound.exposition.endpoint import exposed, is_loopback, open_endpoint, token_of
from xpulse.northbound.exposition.settings import Exposition


def test_dcgm_exporters_port_is_refused_with_the_reason() -> None:
    with pytest.raises(ValidationError, match="9400 is the port of dcgm-exporter"):
        Exposition(port=9400)
    with pytest.raises(UsageError, match=r"health\.port: 9400 is the port of dcgm-exporter"):
        open_endpoint(Exposition(), "127.0.0.1", 9400, lambda: Report(True), lambda request: said(200, ""))


@pytest.mark.parametrize("half", [{"cert_file": "a.pem"}, {"key_file": "a.pem"}])
def test_half_a_key_pair_is_refused(half: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="cert_file and key_file belong together"):
        Exposition.model_validate(half)


def test_two_tokens_are_refused_and_never_shown() -> None:
    with pytest.raises(ValidationError, match="keep one") as caught:
        Exposition(token=SecretStr("hunter2"), token_file=Path("x"))
    assert "hunter2" not in str(caught.value)


def test_the_token_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert token_of(Exposition(token_file=file)) == "secret"
    assert token_of(Exposition()) == ""
    file.write_text("")
    with pytest.raises(UsageError, match=r"northbound\.exposition\.token_file .* is empty"):
        token_of(Exposition(token_file=file))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False), ("gpu-01", False)],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_what_is_said_of_an_open_endpoint() -> None:
    assert exposed(Exposition(), "127.0.0.1") == ""
    both = exposed(Exposition(), "0.0.0.0")
    assert both.startswith("no token: anybody who reaches it reads")
    assert "no TLS: what it sends" in both
    assert exposed(Exposition(token=SecretStr("x")), "::").startswith("no TLS")
    assert exposed(Exposition(token=SecretStr("x"), cert_file=Path("c"), key_file=Path("k")), "0.0.0.0") == ""


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no certificate")
    settings = Exposition(cert_file=tmp_path / "c.pem", key_file=tmp_path / "k.pem")
    with pytest.raises(UsageError, match=r"cert_file .*c\.pem with key_file"):
        open_endpoint(settings, "127.0.0.1", 0, lambda: Report(True), lambda request: said(200, ""))


def test_listening_beyond_loopback_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    server = open_endpoint(Exposition(), "0.0.0.0", 0, lambda: Report(True), lambda request: said(200, ""))
    server.close()
    assert [record.message for record in caplog.records] == ["the endpoint listens beyond loopback"]
