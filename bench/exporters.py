"""Exporters as processes on one fake library, scraped once a second as a Prometheus would; their CPU, memory and series are told."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.stack import cpu_seconds
from xpulse.testing.nvml import calls

START_SECONDS: Final = 60.0
_PEERS: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xpulse-tests"


@dataclass(frozen=True, slots=True)
class Exporter:
    """`command` gets a port; `mine` matches the names of series that are of devices, not of the exporter's own process."""

    name: str
    command: Callable[[int], list[str]]
    mine: re.Pattern[str]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Measured:
    """Over `seconds` at one reading a second. CPU is of all its processes; `calls` are NVML calls by symbol a cycle."""

    name: str
    seconds: float
    cpu_seconds: float
    resident_bytes: int
    processes: int
    series: int
    metrics: int
    calls: Mapping[str, float]

    @property
    def cpu_per_1000_cycles(self) -> float:
        return self.cpu_seconds / self.seconds * 1000


class NotThere(Exception):
    """The exporter is not installed or did not start; the text says what to do."""


def xpulse(folder: Path) -> Exporter:
    """Our agent with its nvidia plugin and no bus."""
    settings = {
        "XPULSE_NORTHBOUND__KAFKA": "false",
        "XPULSE_STATE_DIR": str(folder / "state"),
        "XPULSE_COLLECTORS__PLUGINS": '{"nvidia": {"settings": {"pci_check": false}}}',
    }

    def command(port: int) -> list[str]:
        settings["XPULSE_HEALTH__PORT"] = str(port)
        return [sys.executable, "-m", "xpulse.cli.main", "agent"]

    return Exporter("xpulse", command, re.compile(r"^xpulse_device_"), settings)


def nvitop() -> Exporter:
    """nvitop-exporter, in a virtual environment of its own: it pins another release of the bindings."""
    found = shutil.which("nvitop-exporter") or str(_PEERS / "nvitop-venv" / "bin" / "nvitop-exporter")
    if not Path(found).exists():
        remedy = f"python3 -m venv {_PEERS}/nvitop-venv && {_PEERS}/nvitop-venv/bin/pip install nvitop-exporter"
        raise NotThere(f"nvitop-exporter is not installed; install it: {remedy}")
    pattern = re.compile(r"^(?!python_|process_(?!.*gpu)|host_)\w*(?:gpu|physical|mig|device)\w*", re.IGNORECASE)
    return Exporter("nvitop-exporter", lambda port: [found, "--port", str(port), "--interval", "1.0"], pattern, {})


def all_smi() -> Exporter:
    """all-smi's API mode, built from its crate."""
    places = sorted(_PEERS.glob("all-smi-*/bin/all-smi"))
    found = shutil.which("all-smi") or (str(places[-1]) if places else "")
    if not found:
        remedy = f"cargo install --ignore-rust-version --root {_PEERS}/all-smi-0.28.1 all-smi --version 0.28.1"
        raise NotThere(f"all-smi is not installed; install it (some 10 minutes): {remedy}")
    return Exporter("all-smi", lambda port: [found, "api", "--port", str(port), "--interval", "1"], re.compile(r"^all_smi_gpu_"), {})


def measure(exporter: Exporter, library: Path, state: Path, folder: Path, *, port: int, warm: float, seconds: float) -> Measured:
    """Start it, let it come up and warm, then measure. Raises NotThere where it does not come up."""
    counted = folder / f"{exporter.name}.calls"
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("XPULSE_")},
        "LD_LIBRARY_PATH": str(library.parent),
        "FAKE_NVML_STATE": str(state),
        "FAKE_NVML_CALLS": str(counted),
    }
    command = exporter.command(port)
    log = folder / f"{exporter.name}.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, env=environment | dict(exporter.environment), stdout=said, stderr=said, cwd=folder, start_new_session=True
        )
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        _await(process, url, exporter, log)
        _scrapes(url, warm)
        before, began, asked = _cpu(process.pid), time.monotonic(), calls(counted)
        text = _scrapes(url, seconds)
        took, after, answered = time.monotonic() - began, _cpu(process.pid), calls(counted)
        tree = _tree(process.pid)
        lines = [line for line in text.splitlines() if exporter.mine.match(line)]
        return Measured(
            exporter.name,
            took,
            after - before,
            sum(map(_resident, tree)),
            len(tree),
            len(lines),
            len({re.split(r"[{ ]", line, maxsplit=1)[0] for line in lines}),
            {symbol: (count - asked.get(symbol, 0)) / took for symbol, count in answered.items() if count > asked.get(symbol, 0)},
        )
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def _await(process: subprocess.Popen[bytes], url: str, exporter: Exporter, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        if any(exporter.mine.match(line) for line in _get(url).splitlines()):
            return
        time.sleep(0.3)
    tail = log.read_text(errors="replace").strip().splitlines()[-3:]
    raise NotThere(f"{exporter.name} gave no series of a device in {START_SECONDS:g} s: {' / '.join(tail) or 'it said nothing'}")


def _scrapes(url: str, seconds: float) -> str:
    """One scrape a second; the last answer."""
    until, text = time.monotonic() + seconds, ""
    while (left := until - time.monotonic()) > 0:
        text = _get(url) or text
        time.sleep(min(1.0, left))
    return text


def _get(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return str(reply.read(), "utf-8", "replace")
    except (OSError, urllib.error.URLError, http.client.HTTPException):
        return ""


def _tree(pid: int) -> list[int]:
    """A process and what it has started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        todo += children.get(one, [])
    return found


def _cpu(pid: int) -> float:
    return sum(cpu_seconds(one) for one in _tree(pid))


def _resident(pid: int) -> int:
    """Proportional set size: pages that several of its processes share count once."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
