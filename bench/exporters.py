"""Exporters as processes on one fake library, scraped as a Prometheus would; their CPU, memory, driver calls and series are told."""

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
    """`command` gets a port; `mine` matches the names of series that are of devices, `of_processes` those of processes on devices.

    What is neither is the exporter's own or the host's.
    """

    name: str
    command: Callable[[int], list[str]]
    mine: re.Pattern[str]
    of_processes: re.Pattern[str]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Measured:
    """Over `seconds` at one reading a second. CPU is of all its processes; `calls` are NVML calls by symbol a cycle.

    `series` are of devices, `process_series` of processes on them; `metrics` counts the names of the former.
    """

    name: str
    seconds: float
    cpu_seconds: float
    resident_bytes: int
    processes: int
    series: int
    process_series: int
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

    return Exporter("xpulse", command, re.compile(r"xpulse_device_"), re.compile(r"xpulse_process_"), settings)


def nvitop() -> Exporter:
    """nvitop-exporter, in a virtual environment of its own: it pins another release of the bindings."""
    found = shutil.which("nvitop-exporter") or str(_PEERS / "nvitop-venv" / "bin" / "nvitop-exporter")
    if not Path(found).exists():
        remedy = f"python3 -m venv {_PEERS}/nvitop-venv && {_PEERS}/nvitop-venv/bin/pip install nvitop-exporter"
        raise NotThere(f"nvitop-exporter is not installed; install it: {remedy}")
    return Exporter(
        "nvitop-exporter",
        lambda port: [found, "--port", str(port), "--interval", "1.0"],
        re.compile(r"(?:gpu|mig)_"),
        re.compile(r"process_(?:gpu_|info_info|running_|cpu_percent|rss_|memory_percent)"),
        {},
    )


def all_smi(folder: Path) -> Exporter:
    """all-smi's API mode, built from its crate. It looks for cards by `nvidia-smi -L`, for which a script stands in; it then asks NVML."""
    places = sorted(_PEERS.glob("all-smi-*/bin/all-smi"))
    found = shutil.which("all-smi") or (str(places[-1]) if places else "")
    if not found:
        remedy = f"cargo install --ignore-rust-version --root {_PEERS}/all-smi-0.28.1 all-smi --version 0.28.1"
        raise NotThere(f"all-smi is not installed; install it (some 10 minutes): {remedy}")
    listing = folder / "bin" / "nvidia-smi"
    listing.parent.mkdir(exist_ok=True)
    listing.write_text("#!/bin/sh\n[ \"$1\" = -L ] && echo 'GPU 0: NVIDIA H100 80GB HBM3'\n", encoding="ascii")
    listing.chmod(0o755)
    return Exporter(
        "all-smi",
        lambda port: [found, "api", "--port", str(port), "--interval", "1"],
        re.compile(r"all_smi_(?:gpu|nvlink|mig|vgpu)_"),
        re.compile(r"all_smi_process_"),
        {"PATH": f"{listing.parent}{os.pathsep}{os.environ.get('PATH', '')}"},
    )


def measure(
    exporter: Exporter, library: Path, state: Path, folder: Path, *, port: int, warm: float, seconds: float, every_seconds: float
) -> Measured:
    """Start it, let it come up and warm, then measure while it is scraped `every_seconds`. Raises NotThere where it does not come up."""
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
        _scrapes(url, warm, every_seconds)
        before, began, asked = _cpu(process.pid), time.monotonic(), calls(counted)
        text = _scrapes(url, seconds, every_seconds)
        took, after, answered = time.monotonic() - began, _cpu(process.pid), calls(counted)
        tree = _tree(process.pid)
        lines = [line for line in text.splitlines() if exporter.mine.match(line)]
        if not any(answered.values()):
            raise NotThere(f"{exporter.name} never asked the fake library")
        return Measured(
            exporter.name,
            took,
            after - before,
            sum(map(_resident, tree)),
            len(tree),
            len(lines),
            sum(1 for line in text.splitlines() if exporter.of_processes.match(line)),
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


def _scrapes(url: str, seconds: float, every_seconds: float) -> str:
    """A scrape each `every_seconds` and one at the end; the last answer."""
    until, text = time.monotonic() + seconds, ""
    while (left := until - time.monotonic()) > 0:
        text = _get(url) or text
        time.sleep(min(every_seconds, left))
    return _get(url) or text


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
