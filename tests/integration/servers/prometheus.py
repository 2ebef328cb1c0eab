"""A real Prometheus (Debian's package) that scrapes what a test gives it, and promtool, which judges an exposition."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.integration.servers import toolchain
from tests.integration.servers.ports import free_ports
from tests.integration.servers.progress import Progress
from tests.integration.servers.server import NotReady, Server


def prepare(progress: Progress) -> Path:
    """The folder that Prometheus is in; installed first if it is absent and we may. A service that Debian starts may run beside ours."""
    toolchain.require("prometheus", {"prometheus": ["prometheus"], "promtool": ["prometheus"]}, progress)
    return Path(shutil.which("prometheus") or "prometheus").parent


def lint(exposition: str) -> str:
    """What `promtool check metrics` has against it; "" where nothing."""
    prepare(Progress("prometheus"))
    done = subprocess.run(["promtool", "check", "metrics"], input=exposition, capture_output=True, text=True, check=False, timeout=60)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip() or f"exit code {done.returncode}"


class PrometheusServer(Server):
    """`jobs` are scrape_configs entries without interval; each is scraped once a second."""

    name = "prometheus"

    def __init__(self, jobs: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self.jobs = jobs
        (self._port,) = free_ports(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Result of an instant query: {metric, value} each."""
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}", timeout=10) as reply:
            return list(json.load(reply)["data"]["result"])

    def targets(self) -> list[dict[str, Any]]:
        """What it says of each target: health, lastError, labels."""
        with urllib.request.urlopen(f"{self.url}/api/v1/targets", timeout=10) as reply:
            return list(json.load(reply)["data"]["activeTargets"])

    def _prepare(self, progress: Progress) -> Path:
        return prepare(progress)

    def _lay_out(self, build: Path) -> None:
        settings = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": list(self.jobs)}
        (self.folder / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML

    def _command(self, build: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        arguments = [
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        return [str(build / "prometheus"), *arguments], {}

    def _check_ready(self) -> None:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1) as reply:
                if reply.status == 200:
                    return
        except (OSError, urllib.error.URLError) as error:
            raise NotReady(str(error)) from None
        raise NotReady("not ready")
