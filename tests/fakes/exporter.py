"""A metrics page over real HTTP on loopback, which a test can make slow, broken, huge, moved or guarded while it is served."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

How = Literal["well", "slow_first_byte", "drip", "cut_short", "closed", "redirect", "error", "html", "endless"]


@dataclass
class FakeExporter:
    """`page` is what it says, `how` the way it says it; `authorization` "" lets everybody in. `asked` holds each request's headers."""

    page: str = ""
    how: How = "well"
    authorization: str = ""
    content_type: str = "text/plain; version=0.0.4; charset=utf-8"
    packed: bool = True
    location: str = ""
    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    """Set: what hangs goes on."""


@contextmanager
def serving(fake: FakeExporter, tls: ssl.SSLContext | None = None) -> Iterator[FakeExporter]:
    """The fake on a free port, with `tls` over https."""

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            fake.asked.append(dict(self.headers))
            if fake.authorization and self.headers.get("Authorization") != fake.authorization:
                self.send_error(401)
                return
            match fake.how:
                case "closed":
                    return
                case "redirect":
                    self.send_response(302)
                    self.send_header("Location", fake.location)
                    self.end_headers()
                case "error":
                    self.send_error(503)
                case "html":
                    self._send(b"<html>It works!</html>", "text/html")
                case "slow_first_byte":
                    fake.release.wait(10)
                    self._send(fake.page.encode(), fake.content_type)
                case "drip":
                    self._drip()
                case "endless":
                    self._endless()
                case "cut_short":
                    self._send(fake.page.encode(), fake.content_type, announce=len(fake.page) + 100)
                case "well":
                    self._send(fake.page.encode(), fake.content_type)

        def _send(self, body: bytes, content_type: str, announce: int | None = None) -> None:
            packed = fake.packed and announce is None and "gzip" in self.headers.get("Accept-Encoding", "")
            body = gzip.compress(body) if packed else body
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(announce or len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _drip(self) -> None:
            self.send_response(200)
            self.end_headers()
            while not fake.release.is_set():
                self.wfile.write(b"#\n")
                time.sleep(0.02)

        def _endless(self) -> None:
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            line = gzip.compress(b'a{b="c"} 1\n' * 100_000)
            while not fake.release.is_set():
                self.wfile.write(line)

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):
                return  # the reader has had enough, or its certificate was refused

        def log_message(self, *_: Any) -> None:
            """Silent."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Silent: a refused handshake is what a test is about."""

        def finish_request(self, request: Any, client_address: Any) -> None:
            if tls is None:
                super().finish_request(request, client_address)
            else:  # in the request's own thread: one that never shakes hands must not hold the others
                with tls.wrap_socket(request, server_side=True) as wrapped:
                    super().finish_request(wrapped, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    fake.url = f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}/metrics"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        fake.release.set()
        server.shutdown()
        thread.join()
        server.server_close()
