"""Requests as they come: a file, a signal, a label of the node from an API server that may fail."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from collectors.requests import node_label
from collectors.requests.lease import LeaseFile
from collectors.requests.node_label import Api, NodeLabel, in_cluster
from collectors.requests.signalled import Signalled


def test_a_lease_file_asks_while_it_exists_and_its_first_line_says_why(tmp_path: Path) -> None:
    file = tmp_path / "maintenance"
    request = LeaseFile(file)
    assert request() == ""
    file.touch()
    assert request() == "the lease file exists"
    file.write_bytes(b"driver 590 \x1b[31m\xff\nmore\n")
    assert request() == "driver 590 ?[31m\ufffd"
    file.unlink()
    assert request() == ""
    file.mkdir()
    assert request() == "the lease file exists"
    assert LeaseFile(tmp_path / "none" / "maintenance")() == ""


def test_a_lease_that_is_no_plain_file_asks_and_is_never_opened(tmp_path: Path) -> None:
    """Opening a pipe waits for its writer, with the whole agent; behind a link may be a file that only the agent may read."""
    pipe, link, secret = tmp_path / "pipe", tmp_path / "link", tmp_path / "token"
    os.mkfifo(pipe)
    assert LeaseFile(pipe)() == "the lease file exists"
    secret.write_text("eyJhbGciOi")
    link.symlink_to(secret)
    assert LeaseFile(link)() == "the lease file exists"
    secret.unlink()
    assert LeaseFile(link)() == "", "a link to nothing is no file"


def test_a_signal_turns_the_request_over() -> None:
    before = signal.getsignal(signal.SIGUSR2)
    try:
        request = Signalled()
        assert request() == ""
        os.kill(os.getpid(), signal.SIGUSR2)
        assert request().startswith("SIGUSR2")
        os.kill(os.getpid(), signal.SIGUSR2)
        assert request() == ""
    finally:
        signal.signal(signal.SIGUSR2, before)


class ApiServer:
    """Answers for one node; `status` and `labels` may change."""

    def __init__(self) -> None:
        self.status, self.labels = 200, dict[str, str]()
        self.seen: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.seen.append((self.path, self.headers["Authorization"]))
                body = json.dumps({"metadata": {"labels": outer.labels}}).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    made = ApiServer()
    yield made
    made.close()


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in 20 s"
        time.sleep(0.01)


def test_a_label_asks_and_a_rotated_token_is_used(server: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    server.labels = {"x": "pending"}
    request = NodeLabel(Api(server.url, tmp_path), "n/1", {"x": ("pending",)}, every_seconds=0.01)
    try:
        until(lambda: request() == "x=pending")
        (tmp_path / "token").write_text("two\n")
        server.labels = {"x": "success"}
        until(lambda: request() == "")
        until(lambda: server.seen[-1] == ("/api/v1/nodes/n%2F1", "Bearer two"))
    finally:
        request.close()


def test_an_api_server_that_fails_is_said_once_and_does_not_keep_the_driver_away(
    server: ApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_label, "_FORGET_AFTER", 3)
    (tmp_path / "token").write_text("one")
    server.labels = {"x": "pending"}
    request = NodeLabel(Api(server.url, tmp_path), "n", {"x": ("pending",)}, every_seconds=0.01)
    try:
        until(lambda: request() == "x=pending")
        server.status = 403
        until(lambda: request() == "")
        warned = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
        assert len(warned) == 1
        assert "may not get node n (403)" in warned[0]
        assert "one" not in warned[0].split()
        server.status = 200
        until(lambda: request() == "x=pending")
    finally:
        request.close()


def test_only_a_pod_with_an_account_talks_to_an_api_server(tmp_path: Path) -> None:
    assert in_cluster({}, tmp_path) is None
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path) is None
    (tmp_path / "token").write_text("t")
    found = in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}, tmp_path)
    assert found is not None
    assert found.url == "https://[fd00::1]:6443"
