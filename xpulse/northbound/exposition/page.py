"""The agent's /metrics: who may read it, in which names and format, and what it costs."""

from __future__ import annotations

import hmac
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from schemas import dcgm_names, openmetrics
from schemas.dcgm_names import HostLabel
from schemas.openmetrics_text import CONTENT_TYPE, EOF, wanted
from xpulse.health import SelfMetric, render
from xpulse.listener import Answer, Request, said

if TYPE_CHECKING:
    from xpulse.northbound.exposition.journal import Journal
    from xpulse.northbound.latest import Latest

NAMES: Final = ("xpulse", "dcgm")

_GZIP_LEVEL: Final = 1
"""A page of 8 GPUs (210 kB) takes 2.5 ms and becomes 25 kB; level 6 takes twice that for a tenth less."""

_LEAST_TO_COMPRESS: Final = 1400
"""Less fits one packet anyway."""


class MetricsPage:
    """Answers requests from several threads. `self_metrics` are the agent's own; `token` "" lets everybody read."""

    def __init__(
        self,
        latest: Latest,
        journal: Journal,
        self_metrics: Callable[[], Sequence[SelfMetric]],
        *,
        token: str = "",
        host_label: HostLabel = "Hostname",
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._latest, self._journal, self._self_metrics = latest, journal, self_metrics
        self._token, self._host_label, self._now_ns = token.encode(), host_label, now_ns
        self._lock = threading.Lock()
        self._scrapes: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()
        self._unauthorized = 0

    def __call__(self, request: Request) -> Answer:
        """The page, or why there is none: 401 without the token, 400 for names that there are not."""
        if not self._allowed(request.headers.get("authorization", "")):
            with self._lock:
                self._unauthorized += 1
            return said(401, "this endpoint asks for a bearer token (northbound.exposition.token)\n", {"WWW-Authenticate": "Bearer"})
        names = request.parameters.get("names", "xpulse")
        if names not in NAMES:
            return said(400, f"names is one of {', '.join(NAMES)}\n")
        began = time.perf_counter()
        form = wanted(request.headers.get("accept", "")) if names == "xpulse" else "text"
        now_ns = self._now_ns()
        fleet = self._latest.state(now_ns)
        if names == "dcgm":
            text = dcgm_names.encode(fleet, self._journal.trails(now_ns), self._host_label)
        else:
            text = openmetrics.encode(fleet, form) + render(self._self_metrics(), form) + EOF[form]
        answer = _packed(text.encode(), CONTENT_TYPE[form], request.headers.get("accept-encoding", ""))
        with self._lock:
            self._scrapes[names] += 1
            self._seconds[names] += time.perf_counter() - began  # type: ignore[assignment]  # a Counter adds up floats as well
        return answer

    def scrapes(self) -> dict[str, tuple[int, float]]:
        """By names: how many, and the seconds that making them took."""
        with self._lock:
            return {names: (self._scrapes[names], float(self._seconds[names])) for names in NAMES}

    @property
    def unauthorized(self) -> int:
        """Requests without the right token."""
        return self._unauthorized

    def _allowed(self, authorization: str) -> bool:
        if not self._token:
            return True
        scheme, _, given = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token)


def _packed(body: bytes, content_type: str, accept_encoding: str) -> Answer:
    vary = {"Vary": "Accept, Accept-Encoding"}
    if len(body) < _LEAST_TO_COMPRESS or not _takes_gzip(accept_encoding):
        return Answer(200, body, content_type, vary)
    import gzip

    return Answer(200, gzip.compress(body, _GZIP_LEVEL, mtime=0), content_type, {**vary, "Content-Encoding": "gzip"})


def _takes_gzip(accept_encoding: str) -> bool:
    for offer in accept_encoding.lower().split(","):
        name, _, parameter = offer.partition(";")
        if name.strip() in ("gzip", "*"):
            return parameter.replace(" ", "").rstrip("0").rstrip(".") not in ("q=", "q=0")
    return False
