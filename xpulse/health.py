"""The HTTP endpoint of a role: /healthz (alive), /readyz (does its work), /metrics (Prometheus), /status (JSON, for the live view)."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from schemas.openmetrics_text import CONTENT_TYPE, EOF, Format, escaped, head, sample_name, unit_in, wanted
from xpulse.errors import UsageError
from xpulse.listener import Answer, Handle, Listener, Request, Tls, said

_WHOLE: Final = 2**63
"""Numbers below are shown as integers where they are: 95, not 95.0 or 1e+16."""


@dataclass(frozen=True, slots=True)
class SelfMetric:
    """One self-metric: `samples` are (labels, value). Names are base units; counters end in _total."""

    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    samples: Sequence[tuple[Mapping[str, str], float]]


@dataclass(frozen=True, slots=True)
class Report:
    """What a role says of itself now. `detail` is JSON-ready."""

    ready: bool
    why_not: str = ""
    metrics: Sequence[SelfMetric] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


def render(metrics: Sequence[SelfMetric], form: Format = "text") -> str:
    """Prometheus text 0.0.4, or OpenMetrics without its end mark."""
    lines = []
    for metric in metrics:
        family = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
        sample = sample_name(family, metric.kind)
        lines.append(head(family, metric.kind, metric.meaning, form, unit_in(family)))
        for labels, value in metric.samples:
            inner = ",".join(f'{name}="{escaped(text)}"' for name, text in sorted(labels.items()))
            lines.append(f"{sample}{'{' + inner + '}' if inner else ''} {_number(value)}\n")
    return "".join(lines)


def _number(value: float) -> str:
    whole = int(value) if abs(value) < _WHOLE else value
    return str(whole if whole == value else value)


class HealthServer:
    """Serves reports on `host:port` from threads of its own. `port` 0 takes any free one; `.port` says which.

    `pages` are more paths, or others in place of these four; each gets the request.
    """

    def __init__(
        self,
        host: str,
        port: int,
        report: Callable[[], Report],
        *,
        fall_back: bool = False,
        pages: Mapping[str, Handle] | None = None,
        tls: Tls | None = None,
    ) -> None:
        handle = _pages(report, pages or {})
        try:
            self._listener = Listener(host, port, handle, tls=tls)
        except OSError as error:
            if not fall_back:
                raise UsageError(f"health: {host}:{port} cannot be listened on ({error.strerror}); {_remedy(error)}") from None
            self._listener = Listener(host, 0, handle, tls=tls)
        self.host, self.port, self.refused = host, self._listener.port, self._listener.refused

    def close(self) -> None:
        self._listener.close()


def _remedy(error: OSError) -> str:
    if error.errno == errno.EADDRNOTAVAIL:
        return "set health.host, of an agent northbound.exposition.host, to an address that this host has"
    return "set health.port, of an agent northbound.exposition.port, to another, or 0 for any free one"


def _pages(report: Callable[[], Report], pages: Mapping[str, Handle]) -> Handle:
    names = sorted({"/healthz", "/readyz", "/metrics", "/status", *pages})

    def handle(request: Request) -> Answer:
        if (page := pages.get(request.path)) is not None:
            return page(request)
        match request.path:
            case "/healthz":
                return said(200, "ok\n")
            case "/readyz":
                now = report()
                return said(200, "ready\n") if now.ready else said(503, f"not ready: {now.why_not}\n")
            case "/metrics":
                form = wanted(request.headers.get("accept", ""))
                return Answer(200, (render(report().metrics, form) + EOF[form]).encode(), CONTENT_TYPE[form])
            case "/status":
                now = report()
                body = {"ready": now.ready, "why_not": now.why_not, **now.detail}
                return Answer(200, (json.dumps(body, default=str) + "\n").encode(), "application/json")
            case _:
                return said(404, f"there is {', '.join(names[:-1])} and {names[-1]}\n")

    return handle
