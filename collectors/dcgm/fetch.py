"""Fetches one metrics page: within its time, up to its size, from the address it was told and no other. The only part that talks HTTP."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import time
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from collectors.dcgm.settings import private
from schemas.section import resolve_secret

if TYPE_CHECKING:
    import ssl

    from collectors.dcgm.settings import Dcgm

_ACCEPT: Final = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.9,*/*;q=0.1"
_CHUNK: Final = 65536


@dataclass(frozen=True, slots=True)
class Answer:
    """A page. `taken_at_ns` (ns UTC) is when its first byte came; `cut`: it was larger than allowed."""

    body: bytes
    openmetrics: bool
    taken_at_ns: int
    cut: bool = False


class Unanswered(Exception):
    """No page; says why and, where there is one, the remedy. Never holds a secret."""


@dataclass(frozen=True, slots=True)
class Access:
    """What every request of the plugin has in common. Secrets stay in their settings and files until they are sent."""

    settings: Dcgm
    context: ssl.SSLContext | None = None

    def header(self) -> str:
        """The Authorization header; empty where none is set. The file is read now: it may have been renewed."""
        s = self.settings
        try:
            if token := resolve_secret("bearer_token", s.bearer_token, s.bearer_token_file):
                return f"Bearer {_one_line(token, 'bearer_token')}"
            if s.username:
                secret = resolve_secret("password", s.password, s.password_file)
                return "Basic " + base64.b64encode(f"{s.username}:{secret}".encode()).decode()
        except ValueError as error:
            raise Unanswered(str(error)) from None
        return ""


def access(settings: Dcgm) -> Access:
    """Raises ValueError naming the setting where a certificate file cannot be used."""
    files = (settings.ca_file, settings.certificate_file)
    if not any(files) and settings.verify_tls and not settings.server_name:
        return Access(settings)
    import ssl  # 3 MB; only where TLS has settings of its own

    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.certificate_file is not None:
            context.load_cert_chain(settings.certificate_file, settings.key_file)
    except (OSError, ssl.SSLError) as error:
        names = ", ".join(str(file) for file in files if file is not None)
        raise ValueError(f"ca_file or certificate_file ({names}): {error}; give readable PEM files") from None
    if not settings.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return Access(settings, context)


@dataclass(slots=True)
class Call:
    """One request; `run` in a thread of its own, `abort` from outside where it takes too long."""

    url: str
    access: Access
    started_at: float | None = field(default=None, init=False)
    """The monotonic clock when a thread took it up."""
    _sock: socket.socket | None = field(default=None, init=False)
    _aborted: bool = field(default=False, init=False)

    def run(self) -> Answer:
        """Raises Unanswered."""
        settings = self.access.settings
        self.started_at = time.monotonic()
        until = self.started_at + settings.timeout_seconds
        header = self.access.header()
        if header and not private(self.url):
            raise Unanswered("a secret would cross the network in the clear; give its address with https://")
        connection = self._open(settings.timeout_seconds)
        try:
            return self._ask(connection, header, until)
        except TimeoutError:
            raise Unanswered(f"no answer within {settings.timeout_seconds:g} s") from None
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            if self._aborted:
                raise Unanswered(f"no answer within {settings.timeout_seconds:g} s") from None
            raise Unanswered(_plain(error)) from None
        finally:
            connection.close()

    def abort(self) -> None:
        """Break the connection: `run` then ends at once."""
        self._aborted = True
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)

    def _open(self, timeout_seconds: float) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_seconds)
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_seconds, context=self.access.context)
        if self.access.settings.server_name:
            return _Named(connection, self.access)
        return connection

    def _ask(self, connection: http.client.HTTPConnection, header: str, until: float) -> Answer:
        parts = urlsplit(self.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", "User-Agent": "xpulse", "Connection": "close"}
        connection.request("GET", path, headers=headers | ({"Authorization": header} if header else {}))
        self._sock = connection.sock  # the connection forgets it once the answer says that it closes
        with connection.getresponse() as response:
            taken_at_ns = time.time_ns()
            if problem := _refusal(response):
                raise Unanswered(problem)
            body, cut = self._body(response, until)
            return Answer(body, "openmetrics" in (response.getheader("Content-Type") or ""), taken_at_ns, cut)

    def _body(self, response: http.client.HTTPResponse, until: float) -> tuple[bytes, bool]:
        most = self.access.settings.most_bytes
        packed = (response.getheader("Content-Encoding") or "").lower() in ("gzip", "x-gzip")
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16) if packed else None
        found = bytearray()
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if self._sock is not None:
                self._sock.settimeout(left)
            chunk = response.read1(_CHUNK)
            if not chunk:
                break
            found += chunk if unpack is None else unpack.decompress(chunk, most + 1 - len(found))
            if len(found) > most:
                return bytes(found[:most]), True
        if unpack is not None and not unpack.eof:
            raise ValueError("the packed answer ends in its middle")
        if response.length:
            raise ValueError("the answer ends before its announced length")
        return bytes(found), False


class _Named(http.client.HTTPSConnection):
    """A connection to one address whose certificate carries another name."""

    def __init__(self, like: http.client.HTTPSConnection, access: Access) -> None:
        super().__init__(like.host, like.port, timeout=access.settings.timeout_seconds, context=access.context)
        self._access = access

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        assert self._access.context is not None
        self.sock = self._access.context.wrap_socket(self.sock, server_hostname=self._access.settings.server_name)


def _one_line(secret: str, name: str) -> str:
    """http.client's own error would print the secret."""
    if not secret.isascii() or not secret.isprintable():
        raise ValueError(f"{name} (or {name}_file) is not one line of plain characters")
    return secret


def _refusal(response: http.client.HTTPResponse) -> str:
    match response.status:
        case 200:
            return ""
        case 401 | 403:
            return f"it answers {response.status}: give bearer_token_file, or username and password_file, that it accepts"
        case status if 300 <= status < 400:
            return f"it answers {status}, a redirect, which is not followed; give the address it leads to"
        case status:
            return f"it answers {status} {response.reason}"[:200]


def _plain(error: Exception) -> str:
    text = (error.strerror or "") if isinstance(error, OSError) else ""
    return (text or str(error) or type(error).__name__)[:300]
