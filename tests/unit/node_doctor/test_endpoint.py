"""The doctor's word on the agent's endpoint, and `xpulse health agent` asking it where its settings put it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.node_doctor.picture import levels, picture, problem
from tests.unit.shell.test_listener import certificate
from xpulse.cli.main import command as cli
from xpulse.health import HealthServer, Report
from xpulse.listener import said
from xpulse.node_doctor.endpoint import endpoint
from xpulse.northbound.exposition.endpoint import open_endpoint
from xpulse.northbound.exposition.settings import Exposition


def of(root: Path, **exposition: object) -> dict[str, object]:
    return {"northbound": {"exposition": {name: str(value) for name, value in exposition.items()}}}


def test_loopback_is_good(tmp_path: Path) -> None:
    (found,) = endpoint(picture(tmp_path))
    assert (found.level, found.text.split(": ")[0]) == ("good", "127.0.0.1:9610")


def test_the_network_without_a_token_is_a_problem(tmp_path: Path) -> None:
    found = problem(endpoint(picture(tmp_path, settings=of(tmp_path, host="0.0.0.0", port=9999))))
    assert found.text.startswith("0.0.0.0:9999 is reached by the network; no token")
    assert "token_file" in found.remedy


def test_the_network_with_a_token_and_without_tls_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    where = picture(tmp_path, settings=of(tmp_path, host="0.0.0.0", token_file=tmp_path / "token"))
    assert levels(endpoint(where)) == [("note", "endpoint")]


def test_what_keeps_the_agent_from_starting(tmp_path: Path) -> None:
    settings = of(tmp_path, token_file=tmp_path / "none", cert_file=tmp_path / "c.pem", key_file=tmp_path / "k.pem")
    found = [one for one in endpoint(picture(tmp_path, settings={**settings, "health": {"port": 9400}})) if one.level == "problem"]
    assert {one.lost for one in found} == {"the agent does not start"}
    assert [word in one.text for word, one in zip(("dcgm-exporter", "token_file", "cert_file"), found, strict=True)] == [True] * 3


@pytest.fixture
def tls_agent(tmp_path: Path) -> Iterator[HealthServer]:
    certificate(tmp_path, "gpu-01")
    settings = Exposition(cert_file=tmp_path / "c.pem", key_file=tmp_path / "k.pem")
    server = open_endpoint(settings, "127.0.0.1", 0, lambda: Report(True, detail={"processed_total": 7}), lambda request: said(200, ""))
    yield server
    server.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_health_asks_the_agent_by_tls_at_its_own_address(tmp_path: Path, tls_agent: HealthServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XPULSE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("XPULSE_NORTHBOUND__EXPOSITION__PORT", str(tls_agent.port))
    monkeypatch.setenv("XPULSE_NORTHBOUND__EXPOSITION__CERT_FILE", str(tmp_path / "c.pem"))
    monkeypatch.setenv("XPULSE_NORTHBOUND__EXPOSITION__KEY_FILE", str(tmp_path / "k.pem"))
    said_ = CliRunner().invoke(cli, ["health", "agent"])
    assert (said_.exit_code, said_.output) == (0, "agent: ready; processed 7, published 0, lag unknown, dead letters 0\n")
    (tmp_path / "other").mkdir()
    certificate(tmp_path / "other", "somebody-else")
    monkeypatch.setenv("XPULSE_NORTHBOUND__EXPOSITION__CERT_FILE", str(tmp_path / "other" / "c.pem"))
    assert CliRunner().invoke(cli, ["health", "agent"]).exit_code == 1
