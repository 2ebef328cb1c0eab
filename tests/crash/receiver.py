"""A webhook's receiver as a user would write it: it dedups by Idempotency-Key and keeps what it was told."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """`bodies[key]` is the first body under each key; `repeats` counts deliveries of a key seen before."""

    def __init__(self) -> None:
        self.bodies: dict[str, dict[str, Any]] = {}
        self.repeats = 0
        self.without_key = 0
        lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                key = self.headers.get("Idempotency-Key")
                with lock:
                    if key is None:
                        receiver.without_key += 1
                    elif key in receiver.bodies:
                        receiver.repeats += 1
                    else:
                        receiver.bodies[key] = json.loads(body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/alerts"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
