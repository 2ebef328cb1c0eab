"""A real HTTP server on loopback that answers /api/v2/write as a test's rule says, and remembers what it took and how it came."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Mapping[str, str], str]
OK: Reply = (204, {}, "")


@dataclass
class Request:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    lines: list[str]


@dataclass
class FakeInflux:
    """`rule` gives the reply to a list of lines; lines of a 204 are `stored`."""

    rule: Callable[[list[str]], Reply] = lambda lines: OK
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Take a request."""
        text = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
        lines = text.decode().split("\n")
        self.requests.append(Request(path, headers, lines))
        reply = self.rule(lines)
        if reply[0] < 300:
            self.stored += lines
        return reply


@contextmanager
def serving(fake: FakeInflux) -> Iterator[FakeInflux]:
    """The fake on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, text = fake.answer(self.path, dict(self.headers), body)
            if status == 0:  # no answer at all
                self.close_connection = True
                return
            payload = text.encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            if status != 204:
                self.wfile.write(payload)

        def log_message(self, *_: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
