"""A real OpenTelemetry Collector: OTLP in by gRPC and HTTP, on loopback, with or without TLS, and each request out as a line of JSON."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.integration.servers import otelcol_build
from tests.integration.servers.ports import free_ports
from tests.integration.servers.progress import Progress
from tests.integration.servers.server import POLL_SECONDS, NotReady, Server


class OtelCollector(Server):
    """`tls` holds the files of the server's certificate: cert_file, key_file, and client_ca_file where clients must have one too."""

    name = "otelcol"

    def __init__(self, tls: Mapping[str, Path] | None = None) -> None:
        super().__init__()
        self._grpc_port, self._http_port = free_ports(2)
        self._tls = {key: str(path) for key, path in (tls or {}).items()}

    @property
    def grpc(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._grpc_port}"

    @property
    def http(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http_port}"

    @property
    def _scheme(self) -> str:
        return "https" if self._tls else "http"

    def received(self, least_points: int, patience_seconds: float = 20.0) -> list[dict[str, Any]]:
        """Every data point so far, once there are `least_points`: the point's JSON with `metric`, `resource` and `scope` beside it."""
        deadline = time.monotonic() + patience_seconds
        while len(points := list(self._points())) < least_points:
            if time.monotonic() > deadline:
                raise AssertionError(f"the collector wrote {len(points)} of {least_points} points")
            time.sleep(POLL_SECONDS)
        return points

    def forget(self) -> None:
        """Empty the file; the collector goes on at its end."""
        self._file.write_bytes(b"")

    @property
    def _file(self) -> Path:
        return self.folder / "metrics.jsonl"

    def _points(self) -> Iterator[dict[str, Any]]:
        if not self._file.exists():
            return
        for line in self._file.read_text(encoding="utf-8").split("\n")[:-1]:  # the last one may be in the making
            for resource in json.loads(line.lstrip("\0"))["resourceMetrics"]:
                for scope in resource["scopeMetrics"]:
                    for metric in scope["metrics"]:
                        for point in metric.get("sum", metric.get("gauge"))["dataPoints"]:
                            yield point | {"metric": metric, "resource": resource["resource"], "scope": scope["scope"]}

    def _prepare(self, progress: Progress) -> Path:
        return otelcol_build.prepare(progress)

    def _lay_out(self, build: Path) -> None:
        def listen(port: int) -> dict[str, Any]:
            return {"endpoint": f"127.0.0.1:{port}"} | ({"tls": self._tls} if self._tls else {})

        settings = {
            "receivers": {"otlp": {"protocols": {"grpc": listen(self._grpc_port), "http": listen(self._http_port)}}},
            "exporters": {"file": {"path": str(self._file), "append": True, "flush_interval": "50ms"}},
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {"metrics": {"receivers": ["otlp"], "exporters": ["file"]}},
            },
        }
        (self.folder / "otelcol.yaml").write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML

    def _command(self, build: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        return [str(build / "otelcol"), "--config", str(self.folder / "otelcol.yaml")], {}

    def _check_ready(self) -> None:
        for port in (self._grpc_port, self._http_port):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError as error:
                raise NotReady(f"port {port}: {error}") from None
