"""A real InfluxDB 2 with Flux, on loopback, set up with a random operator token; without the UI's files."""

from __future__ import annotations

import http.client
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.integration.servers import influxdb_build
from tests.integration.servers.ports import free_ports
from tests.integration.servers.progress import Progress
from tests.integration.servers.server import NotReady, Server

ANSWER_SECONDS = 30.0


class InfluxServer(Server):
    """One influxd with an organisation, a bucket that keeps everything, and an operator token."""

    name = "influxdb"
    org = "xpulse"
    bucket = "xpulse"
    username = "operator"

    def __init__(self) -> None:
        super().__init__()
        (self._port,) = free_ports(1)
        self.token = secrets.token_urlsafe(48)
        self.password = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self._port}"

    def request(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
        """One HTTP request with the operator token; an answer of 400 and above is a RuntimeError with its text."""
        status, answer = self._ask(method, path, body, {"Authorization": f"Token {self.token}", **(headers or {})})
        if status >= 400:
            raise RuntimeError(f"influxdb: {method} {path} answered {status}: {answer.decode(errors='replace')}")
        return answer

    def write(self, lines: str) -> None:
        """Write line protocol with nanosecond times to the bucket."""
        self.request("POST", f"/api/v2/write?org={self.org}&bucket={self.bucket}&precision=ns", lines.encode())

    def query(self, flux: str) -> str:
        """Run a Flux query and return its annotated CSV."""
        headers = {"Content-Type": "application/vnd.flux", "Accept": "application/csv"}
        return self.request("POST", f"/api/v2/query?org={self.org}", flux.encode(), headers).decode()

    def _prepare(self, progress: Progress) -> Path:
        return influxdb_build.prepare(progress)

    def _lay_out(self, build: Path) -> None:
        """Nothing: influxd makes its files itself."""

    def _command(self, build: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        places = {"--bolt-path": "influxd.bolt", "--sqlite-path": "influxd.sqlite", "--engine-path": "engine"}
        options = [word for option, place in places.items() for word in (option, str(self.folder / place))]
        command = [str(build / "influxd"), *options, "--http-bind-address", f"127.0.0.1:{self._port}"]
        # influxd takes any option from INFLUXD_… too: a developer's own server must not shape this one.
        env = {name: value for name, value in os.environ.items() if not name.startswith("INFLUXD_")}
        return [*command, "--reporting-disabled"], env

    def _check_ready(self) -> None:
        status, answer = self._ask_json("GET", "/health")
        if answer.get("status") != "pass":
            raise NotReady(f"/health answered {status}: {answer}")
        _, setup = self._ask_json("GET", "/api/v2/setup")
        if setup.get("allowed"):
            self._set_up()

    def _set_up(self) -> None:
        wanted = {"username": self.username, "password": self.password, "token": self.token}
        body = json.dumps({**wanted, "org": self.org, "bucket": self.bucket}).encode()
        status, answer = self._ask("POST", "/api/v2/setup", body, {"Content-Type": "application/json"})
        if status != 201:
            raise NotReady(f"/api/v2/setup answered {status}: {answer.decode(errors='replace')}")

    def _ask_json(self, method: str, path: str) -> tuple[int, dict[str, object]]:
        try:
            status, answer = self._ask(method, path)
            read = json.loads(answer)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotReady(f"{method} {path}: {error}") from None
        return status, read if isinstance(read, dict) else {}

    def _ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """One request on its own connection; no proxy setting of the environment applies."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
