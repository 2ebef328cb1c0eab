"""A small HTTP server that no client can block: so many connections at once, each with a deadline; TLS where certificates are given."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    import ssl

log = logging.getLogger("xpulse.http")

MOST_CONNECTIONS: Final = 16
MOST_OF_ONE_ADDRESS: Final = 8
"""One client, however many connections it opens, leaves room for the others."""

PATIENCE_SECONDS: Final = 10.0
"""From accepting a connection to the end of its answer (Prometheus' own default is to wait 10 s)."""

_POLL_SECONDS: Final = 0.5
_MOST_PARAMETERS: Final = 20
_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """`headers` have lower-case names; of a parameter that comes twice the last counts."""

    method: str
    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client gets; Content-Length is added."""

    code: int
    body: bytes
    content_type: str = _TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


def said(code: int, text: str, headers: Mapping[str, str] | None = None) -> Answer:
    """A plain text answer."""
    return Answer(code, text.encode(), _TEXT, headers or {})


Handle = Callable[[Request], Answer]


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files; they are read again when they change, so that renewed certificates need no restart."""

    cert_file: Path
    key_file: Path

    def context(self) -> ssl.SSLContext:
        """Raises OSError (ssl.SSLError is one) where the files cannot be used."""
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.cert_file, self.key_file)
        return context

    def changed(self) -> tuple[int, int]:
        """When the files were last written, ns."""
        return self.cert_file.stat().st_mtime_ns, self.key_file.stat().st_mtime_ns


class Listener:
    """Serves `handle` on `host:port` from threads of its own until `close`; port 0 takes any free one. Raises OSError where that fails.

    `refused` counts connections turned away, by reason: busy, too_slow, tls.
    """

    def __init__(self, host: str, port: int, handle: Handle, *, tls: Tls | None = None, patience_seconds: float = PATIENCE_SECONDS) -> None:
        kind = _Server6 if ":" in host else _Server
        self._server = kind((host, port), _handler(handle, patience_seconds), tls, patience_seconds)
        self.host, self.port = host, int(self._server.server_address[1])
        self.refused = self._server.refused
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": _POLL_SECONDS}, name="http", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(HTTPServer):
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], tls: Tls | None, patience_seconds: float) -> None:
        self.refused: Counter[str] = Counter()
        self._tls, self._patience_seconds = tls, patience_seconds
        self._context = tls.context() if tls else None
        self._changed = tls.changed() if tls else None
        self._lock = threading.Lock()
        self._open: dict[socket.socket, tuple[str, float]] = {}
        super().__init__(address, handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's own asks the DNS for its name, which may take long
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        peer = str(client_address[0])
        with self._lock:
            of_peer = sum(address == peer for address, _ in self._open.values())
            busy = len(self._open) >= MOST_CONNECTIONS or of_peer >= MOST_OF_ONE_ADDRESS
            if not busy:
                self._open[request] = (peer, time.monotonic())
        if busy:
            self._turn_away(request)
            return
        threading.Thread(target=self._serve, args=(request, client_address), name="http-client", daemon=True).start()

    def service_actions(self) -> None:
        """Cut off whoever takes too long; called at least once each _POLL_SECONDS."""
        limit = time.monotonic() - self._patience_seconds
        with self._lock:
            late = [request for request, (_, since) in self._open.items() if since < limit]
        for request in late:
            self.refused["too_slow"] += 1
            _shut(request)

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        wrapped: socket.socket = request
        try:
            request.settimeout(self._patience_seconds)
            if self._tls is not None:
                wrapped = self._renewed(self._tls).wrap_socket(request, server_side=True, do_handshake_on_connect=False)
                with self._lock:
                    self._open[wrapped] = self._open.pop(request)
                wrapped.do_handshake()
            self.finish_request(wrapped, client_address)
        except OSError as error:  # a client that went away, or spoke no TLS
            if type(error).__name__.startswith("SSL"):
                self.refused["tls"] += 1
        except Exception:
            log.exception("a request could not be answered")
        finally:
            with self._lock:
                self._open.pop(wrapped, None)
            self.shutdown_request(wrapped)

    def _renewed(self, tls: Tls) -> ssl.SSLContext:
        assert self._context is not None
        try:
            if (changed := tls.changed()) != self._changed:
                self._context, self._changed = tls.context(), changed
        except OSError as error:  # half written, or gone: the old one serves on
            log.warning("the certificate cannot be read again; the old one stays in use", extra={"error": str(error)})
        return self._context

    def _turn_away(self, request: socket.socket) -> None:
        self.refused["busy"] += 1
        with contextlib.suppress(OSError):
            request.settimeout(0.1)
            if self._tls is None:
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
        self.shutdown_request(request)


class _Server6(_Server):
    address_family = socket.AF_INET6


def _shut(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(request, socket.SHUT_RDWR)  # not SSLSocket's own, which is not for a second thread


def _handler(handle: Handle, patience_seconds: float) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = patience_seconds
        server_version, sys_version = "xpulse", ""
        error_content_type = _TEXT
        error_message_format = "%(code)d %(message)s\n"

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            try:
                parameters = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS))
            except ValueError:
                self._send(said(400, f"more than {_MOST_PARAMETERS} parameters\n"))
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                answer = handle(Request(self.command, path, parameters, headers))
            except Exception:
                log.exception("a page could not be made", extra={"path": path})
                answer = said(500, "the page could not be made; the log says why\n")
            self._send(answer)

        do_HEAD = do_GET

        def _refuse(self) -> None:
            self._send(said(405, "only GET and HEAD\n", {"Allow": "GET, HEAD"}))

        do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.code)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Connection", "close")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Normal operation is silent."""

    return Handler
