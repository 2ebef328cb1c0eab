"""The run under test: `xpulse up` against real Kafka and InfluxDB, and the means to kill each of its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.integration.servers.influxdb import InfluxServer
from tests.integration.servers.kafka import KafkaServer
from xpulse.local.runfiles import read_pid, read_ports
from xpulse.local.status import read
from xpulse.process import tree

ROLES = ("agent", "agent's plugin", "attribute", "detect", "alert", "influxdb", "notify", "mirror", "forecast")
READY_SECONDS = 90.0


class Stack:
    """Start with `start`; `kill(role)` is kill -9 and `await_ready` waits until a new process does its work."""

    def __init__(self, folder: Path, kafka: KafkaServer, influx: InfluxServer, *, webhook: str, runner: str) -> None:
        self.state = folder / "state"
        self.summary = folder / "summary.json"
        self._log = folder / "up.log"
        self._token = folder / "token"
        admin = folder / "admin-token"
        admin.touch(mode=0o600)
        admin.write_text(influx.token, encoding="ascii")
        self._admin = admin
        self._runner = runner
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("XPULSE_")},
            "XPULSE_STATE_DIR": str(self.state),
            "XPULSE_CLUSTER": "crash",
            "XPULSE_BUS__BROKERS": kafka.bootstrap,
            "XPULSE_BUS__PARTITIONS": "4",
            "XPULSE_BUS__REPLICATION_FACTOR": "1",
            "XPULSE_BUS__MIN_INSYNC_REPLICAS": "1",
            "XPULSE_SINKS__STORE": "influxdb",
            "XPULSE_SINKS__INFLUXDB__URL": influx.url,
            "XPULSE_SINKS__INFLUXDB__ORG": influx.org,
            "XPULSE_SINKS__INFLUXDB__BUCKET": "crash",
            "XPULSE_SINKS__INFLUXDB__TOKEN_FILE": str(self._token),
            "XPULSE_SINKS__NOTIFY__WEBHOOKS": json.dumps([{"url": webhook}]),
            "XPULSE_HEALTH__PORT": "0",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str, expect: int = 0) -> str:
        """Run one verb to its end; its output."""
        done = subprocess.run(
            [sys.executable, "-m", "xpulse.cli.main", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != expect:
            raise RuntimeError(f"xpulse {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def prepare(self) -> None:
        """Topics, bucket and token, as the production guide says."""
        self._token.touch(mode=0o600)
        self.command("topics", "create")
        self.command("sink", "influxdb", "--setup", "--admin-token-file", str(self._admin), "--write-token", str(self._token))

    def start(self, faults: list[str]) -> None:
        arguments = [
            "up",
            "--no-view",
            "--simulate",
            "2x8",
            "--seed",
            "7",
            "--runner",
            self._runner,
            "--for",
            "2h",
            "--summary",
            str(self.summary),
        ]
        for fault in faults:
            arguments += ["--fault", fault]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "xpulse.cli.main", *arguments],
                env=self.environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def pid(self, role: str) -> int:
        """Process id of a role now; of the agent's plugin, the agent's first child."""
        if role == "agent's plugin":
            children = tree(self.pid("agent"))[1:]
            return children[0] if children else 0
        return read_pid(self.state, role) or 0

    def kill(self, role: str) -> int:
        """kill -9; the process id that is now gone."""
        pid = self.pid(role)
        if not pid:
            raise RuntimeError(f"{role} has no process to kill; {self.tail()}")
        os.kill(pid, signal.SIGKILL)
        return pid

    def await_ready(self, roles: list[str], *, not_pid: int = 0) -> float:
        """Wait until each role is ready in a process other than `not_pid`; the seconds it took. Raises RuntimeError after READY_SECONDS."""
        began = time.monotonic()
        waiting = list(roles)
        while time.monotonic() - began < READY_SECONDS:
            waiting = [role for role in waiting if not self._is_ready(role, not_pid)]
            if not waiting:
                return time.monotonic() - began
            self.check_alive()
            time.sleep(0.2)
        raise RuntimeError(f"not ready after {READY_SECONDS:.0f} s: {', '.join(waiting)}; {self.tail()}")

    def _is_ready(self, role: str, not_pid: int) -> bool:
        pid = self.pid(role)
        if not pid or pid == not_pid or not Path(f"/proc/{pid}").exists():
            return False
        name = "agent" if role == "agent's plugin" else role
        port = read_ports(self.state, [name])[name]
        status = read(port) if port else None
        return status is not None and status.ready

    def check_alive(self) -> None:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"xpulse up has ended; {self.tail()}")

    def finish(self) -> dict[str, object]:
        """End the run with its drain; the summary."""
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)
        code = self._process.wait(90)
        if code != 0:
            raise RuntimeError(f"xpulse up ended with {code}; {self.tail()}")
        found: dict[str, object] = json.loads(self.summary.read_text(encoding="utf-8"))
        return found

    def close(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def tail(self) -> str:
        logs = [self._log, *sorted((self.state / "logs").glob("*.log"))]
        return "\n".join(f"--- {p.name}\n" + "\n".join(p.read_text(errors="replace").splitlines()[-6:]) for p in logs if p.exists())
