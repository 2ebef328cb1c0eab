"""The HTTP endpoint of a role: /healthz (alive), /readyz (does its work), /metrics (Prometheus text), /status (JSON, for the live view)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from xpulse.errors import UsageError


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


def escape_label(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def render(metrics: Sequence[SelfMetric]) -> str:
    """Prometheus text format 0.0.4."""
    lines = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {metric.meaning}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for labels, value in metric.samples:
            inner = ",".join(f'{k}="{escape_label(v)}"' for k, v in sorted(labels.items()))
            lines.append(f"{metric.name}{'{' + inner + '}' if inner else ''} {value:.17g}")
    return "\n".join(lines) + "\n"


class _Server6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


class HealthServer:
    """Serves reports on `host:port` from a thread of its own. `port` 0 takes any free one; `.port` says which."""

    def __init__(self, host: str, port: int, report: Callable[[], Report], *, fall_back: bool = False) -> None:
        handler = _handler(report)
        kind = _Server6 if ":" in host else ThreadingHTTPServer
        try:
            self._server = kind((host, port), handler)
        except OSError as error:
            if not fall_back:
                raise UsageError(
                    f"health: {host}:{port} cannot be listened on ({error.strerror}); set health.port to another, or 0 for any free one"
                ) from None
            self._server = kind((host, 0), handler)
        self._server.daemon_threads = True
        self.host = host
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="health", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(report: Callable[[], Report]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now = report()
            path = self.path.partition("?")[0]
            if path == "/healthz":
                self._send(200, "ok\n")
            elif path == "/readyz":
                self._send(200 if now.ready else 503, "ready\n" if now.ready else f"not ready: {now.why_not}\n")
            elif path == "/metrics":
                self._send(200, render(now.metrics), "text/plain; version=0.0.4; charset=utf-8")
            elif path == "/status":
                body = {"ready": now.ready, "why_not": now.why_not, **now.detail}
                self._send(200, json.dumps(body, default=str) + "\n", "application/json")
            else:
                self._send(404, "there is /healthz, /readyz, /metrics and /status\n")

        def _send(self, code: int, text: str, content_type: str = "text/plain; charset=utf-8") -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Normal operation is silent."""

    return Handler
