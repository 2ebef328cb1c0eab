"""OTLP as protobuf over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import urllib3

from xpulse.northbound.otlp import headers, outcome

if TYPE_CHECKING:
    from xpulse.northbound.otlp.settings import Otlp
    from xpulse.northbound.otlp.waiting import Packed

_MOST_ANSWER_BYTES: Final = 64 * 1024


class Http:
    """One kept connection. Redirects are not followed (headers may hold a token), and no proxy is taken from the environment."""

    def __init__(self, settings: Otlp, agent: str) -> None:
        self._settings = settings
        self._agent = agent
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=1,
            ca_certs=settings.ca_file and str(settings.ca_file),
            cert_file=settings.cert_file and str(settings.cert_file),
            key_file=settings.key_file and str(settings.key_file),
        )

    def send(self, packed: Packed, timeout_seconds: float) -> outcome.Outcome:
        gzip = self._settings.compression == "gzip"
        try:
            extra = headers.of(self._settings)
        except ValueError as error:
            return outcome.Later("headers_file", str(error))
        ours = {"content-type": "application/x-protobuf", "user-agent": self._agent}
        if gzip:
            ours["content-encoding"] = "gzip"
        try:
            answer = self._pool.request(
                "POST",
                self._settings.url(),
                body=packed.body if gzip else packed.message(),
                headers={**extra, **ours},
                timeout=urllib3.Timeout(total=timeout_seconds),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            body = answer.read(_MOST_ANSWER_BYTES)
            # A connection with more to read on it could not be used again.
            answer.close() if len(body) == _MOST_ANSWER_BYTES else answer.release_conn()
        except urllib3.exceptions.TimeoutError as error:
            return outcome.Later("timeout", str(error)[: outcome.SAID])
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return outcome.Later("connection", str(error)[: outcome.SAID])
        return outcome.of_http(answer.status, {k.lower(): v for k, v in answer.headers.items()}, body, datetime.now(UTC))

    def close(self) -> None:
        self._pool.clear()
