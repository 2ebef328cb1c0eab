"""DCGM beside us: who answers on its ports, and what that means for the plugin."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.unit.node_doctor.picture import levels, picture, problem
from xpulse.node_doctor import beside

DCGM: dict[str, Any] = {"collectors": {"plugins": {"nvidia": {}, "dcgm": {}}}}


class Page(BaseHTTPRequestHandler):
    text = b'DCGM_FI_DEV_GPU_TEMP{gpu="0"} 40\nDCGM_FI_PROF_SM_ACTIVE 0.5\n'

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def exporter() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()


@pytest.fixture
def nobody() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


def test_an_exporter_is_noted_where_its_plugin_is_off(tmp_path: Path, exporter: int, nobody: int) -> None:
    (found,) = beside.dcgm(picture(tmp_path), exporter, nobody)
    assert (found.level, found.text) == ("note", f"dcgm-exporter answers on 127.0.0.1:{exporter}, with profiling fields")


def test_an_exporter_is_good_where_its_plugin_is_on(tmp_path: Path, exporter: int, nobody: int) -> None:
    assert levels(beside.dcgm(picture(tmp_path, settings=DCGM), exporter, nobody)) == [("good", "dcgm")]


def test_no_exporter_is_a_problem_for_its_plugin_alone(tmp_path: Path, nobody: int) -> None:
    assert list(beside.dcgm(picture(tmp_path), nobody, nobody)) == []
    assert "not the host's" in problem(beside.dcgm(picture(tmp_path, settings=DCGM), nobody, nobody)).remedy


def test_a_host_engine_is_noted(tmp_path: Path, nobody: int, exporter: int) -> None:
    assert levels(beside.dcgm(picture(tmp_path), nobody, exporter)) == [("note", "dcgm")]
