"""One HTTP connection pool to InfluxDB's write endpoint: gzip level 1, nanosecond precision always, no redirects, no hidden retries."""

from __future__ import annotations

import gzip
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlencode

import urllib3

from sinks.influxdb.answer import Answer, read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence


class Unreachable(Exception):
    """No answer: it is not known whether the lines were written; the same bytes again are safe."""


class Door(Protocol):
    """Where lines are sent to."""

    def post(self, lines: Sequence[bytes]) -> Answer:
        """Send lines; raises Unreachable."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where and how. `token` "" sends no Authorization header. `gzip_level` 0 sends plain text. `ca_file` "" is the system's store."""

    url: str
    org: str
    bucket: str
    token: str
    gzip_level: int
    timeout_seconds: float
    verify_tls: bool
    ca_file: str


class HttpDoor:
    """`/api/v2/write` of InfluxDB 2.x; InfluxDB 3 and VictoriaMetrics answer the same call."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=1,
            retries=False,
            timeout=urllib3.Timeout(connect=min(5.0, target.timeout_seconds), read=target.timeout_seconds),
            cert_reqs="CERT_REQUIRED" if target.verify_tls else "CERT_NONE",
            ca_certs=target.ca_file or None,
        )
        query = urlencode({"org": target.org, "bucket": target.bucket, "precision": "ns"})
        self._write_url = f"{target.url.rstrip('/')}/api/v2/write?{query}"
        self._headers = {"Content-Type": "text/plain; charset=utf-8", "User-Agent": "xpulse"}
        if target.token:
            self._headers["Authorization"] = f"Token {target.token}"

    def post(self, lines: Sequence[bytes]) -> Answer:
        body = b"\n".join(lines)
        headers = self._headers
        if self._target.gzip_level:
            # level 1: a third of the time of level 6 for a quarter more bytes (streams.md §3.2)
            body = gzip.compress(body, compresslevel=self._target.gzip_level, mtime=0)
            headers = {**headers, "Content-Encoding": "gzip"}
        try:
            response = self._pool.request("POST", self._write_url, body=body, headers=headers, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(str(error)) from None
        return read_answer(response.status, response.headers, response.data, time.time())

    def close(self) -> None:
        self._pool.clear()
