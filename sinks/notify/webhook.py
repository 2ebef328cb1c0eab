"""The webhook channel: an HTTP POST of the alert as JSON, with a key by which the receiver recognises a repeat, signed on request.

The document is that of xpulse.alerts.json and `members`: how many alerts its incident has had so far.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import urllib3

from sinks.alert_json import alert_document, encode, transition_id
from sinks.notify.channel import Later, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from schemas.telemetry import v1

_RETRY_SECONDS: Final = 5.0
_PASSING: Final = frozenset({408, 425, 429})
"""Client errors that pass by themselves: timeout, too early, too many requests."""


class Webhook:
    """A Channel. 2xx is delivered; 408, 425, 429, 5xx, a redirect and no answer come again; any other 4xx is refused for good.

    Headers: `Idempotency-Key`, the same for each repeat of a transition, and with a secret
    `X-XPulse-Signature: sha256=<HMAC-SHA256 of the body, hex>`. `number` tells two receivers on one host apart.
    """

    def __init__(
        self,
        url: str,
        *,
        number: int = 0,
        headers: Mapping[str, str],
        secret: str,
        timeout_seconds: float,
        verify_tls: bool = True,
        ca_file: str = "",
    ) -> None:
        parts = urlsplit(url)
        # path and query may hold a receiver's token: they are never shown
        self.name = f"webhook {number} ({parts.scheme}://{parts.netloc})"
        self._url = url
        self._headers = {"Content-Type": "application/json", "User-Agent": "xpulse", **headers}
        self._secret = secret.encode()
        self._pool = urllib3.PoolManager(
            num_pools=1,
            retries=False,
            timeout=urllib3.Timeout(connect=min(5.0, timeout_seconds), read=timeout_seconds),
            cert_reqs="CERT_REQUIRED" if verify_tls else "CERT_NONE",
            ca_certs=ca_file or None,
        )

    def deliver(self, alert: v1.Alert, members: int = 1) -> None:
        body = encode(alert_document(alert) | {"members": members})
        headers = {**self._headers, "Idempotency-Key": transition_id(alert)}
        if self._secret:
            headers["X-XPulse-Signature"] = f"sha256={hmac.new(self._secret, body, hashlib.sha256).hexdigest()}"
        try:
            response = self._pool.request("POST", self._url, body=body, headers=headers, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            raise Later(_RETRY_SECONDS, f"{self.name}: {type(error).__name__}") from None
        if 200 <= response.status < 300:
            return
        if response.status in _PASSING or not 400 <= response.status < 500:
            raise Later(_wait(response.headers.get("Retry-After")), f"{self.name} answered {response.status}")
        raise Refused(f"{self.name} answered {response.status}: check its url, headers and secret")


def _wait(asked: str | None) -> float:
    return min(max(float(asked), 1.0), 300.0) if asked and asked.isascii() and asked.isdigit() else _RETRY_SECONDS
