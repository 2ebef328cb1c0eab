"""TLS to an exporter, with certificates made by openssl for the test."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from collectors.contract import Ready, Unavailable
from collectors.dcgm.plugin import create
from tests.fakes.exporter import FakeExporter, serving
from tests.unit.collectors.dcgm.pages import ENV, H100

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed: apt-get install openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of its own authority for the name exporter.test, and its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "made.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", "/CN=exporter.test", "-addext", "subjectAltName=DNS:exporter.test", "-keyout", str(key), "-out", str(made)),
        ],
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_bytes(made.read_bytes() + key.read_bytes())
    return both


def probe(url: str, **settings: Any) -> Ready | Unavailable:
    plugin = create({"endpoints": [url], **settings}, ENV)
    try:
        return plugin.probe()
    finally:
        plugin.close()


@pytest.mark.parametrize("mutual", [False, True], ids=["server", "mutual"])
def test_certificates_are_checked(certificate: Path, mutual: bool) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    if mutual:
        context.load_verify_locations(certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    own: dict[str, Any] = {"certificate_file": str(certificate)} if mutual else {}
    with serving(FakeExporter(H100), context) as exporter:
        known = {"ca_file": str(certificate), **own}
        assert isinstance(probe(exporter.url, server_name="exporter.test", **known), Ready)
        assert isinstance(probe(exporter.url, verify_tls=False, **own), Ready)
        for refused in ({**own, "server_name": "exporter.test"}, known, {**known, "server_name": "other.test"}):
            found = probe(exporter.url, **refused)
            assert isinstance(found, Unavailable)
            assert "certificate" in found.reason.lower()
        if mutual:
            assert isinstance(probe(exporter.url, ca_file=str(certificate), server_name="exporter.test"), Unavailable)
