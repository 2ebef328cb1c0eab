"""Makes a bundle: runs the plugin as it is for some ticks, and writes down each call, each sample and what the machine is."""

from __future__ import annotations

import gzip
import io
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format

from collectors.contract import Env, Reading, Unavailable
from collectors.nvidia.plugin import Plugin
from collectors.nvidia.settings import Nvidia
from collectors.nvidia.source import Source
from collectors.nvidia.tape.bundle import QUIET, Tick, write, write_tick
from collectors.nvidia.tape.record import Recorder
from collectors.nvidia.tape.redact import Redaction
from collectors.nvidia.unified import MEMINFO
from collectors.worker import FAST, FAST_AND_SLOW
from schemas.telemetry import v1

LEFT_OUT: Final = ("host name", "process lists", "command lines", "environment")
SLOW_EVERY: Final = 5
"""A capture is short: every fifth tick reads the slow fields too."""


class NothingToCapture(RuntimeError):
    """The driver cannot be read; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a capture holds."""

    ticks: int
    devices: int
    calls: int
    replaced: int
    """Serials and UUIDs that were replaced."""
    driver_version: str


class _Clock:
    """The monotonic clock, and what it said last: a replay gives the plugin the same."""

    last = 0.0

    def __call__(self) -> float:
        self.last = time.monotonic()
        return self.last


@dataclass(slots=True)
class _Meminfo:
    """/proc/meminfo, remembering what of it was read: two numbers, and nothing else of the host.

    Within one tick it is read once, however many cards share the memory: a replay has one text a tick. `anew` begins a tick.
    """

    path: Path = MEMINFO
    seen: str = ""

    def anew(self) -> None:
        self.seen = ""

    def read_text(self) -> str:
        if self.seen:
            return self.seen
        wanted = [line for line in self.path.read_text().splitlines() if line.startswith(("MemTotal:", "MemAvailable:"))]
        self.seen = "\n".join(wanted) + "\n"
        return self.seen


def capture(
    path: Path,
    settings: Mapping[str, Any],
    env: Env,
    *,
    ticks: int,
    interval_seconds: float,
    redact: bool = True,
    progress: Callable[[int, int], None] = lambda done, of: None,
    sleep: Callable[[float], None] = time.sleep,
    meminfo: Path = MEMINFO,
) -> Summary:
    """Write a bundle to `path`, which must not exist: mode 0600, complete or not there.

    `settings` are the plugin's own. Raises NothingToCapture where the driver cannot be read, OSError where the file cannot be written.
    """
    recorder, redaction, memory, clock = Recorder(), Redaction(), _Meminfo(meminfo), _Clock()
    model = Nvidia.model_validate({**settings, **QUIET})
    plugin = Plugin(model, env, Source(recorder.wrap), meminfo=memory, monotonic=clock)
    new = path.with_name(path.name + ".part")
    mine = False
    calls = devices = 0
    try:
        ready = plugin.probe()
        if isinstance(ready, Unavailable):
            raise NothingToCapture(ready.reason)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        mine = True
        with os.fdopen(descriptor, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as zipped:
            file = io.TextIOWrapper(zipped, encoding="utf-8", write_through=True)
            for number in range(ticks):
                due = FAST_AND_SLOW if number % SLOW_EVERY == 0 else FAST
                memory.anew()
                reading = plugin.read(due, time.monotonic() + 60.0)
                said = recorder.take()
                if redact:
                    redaction.learn(said)
                if number == 0:
                    write(file, _head(model, recorder, plugin, redact))
                tick = _tick(reading, clock.last, due, memory.seen)
                part = reading.samples[0]
                tick = Tick(
                    tick.taken_at_ns,
                    tick.at,
                    tick.due,
                    tuple(redaction.said(one) if redact else one for one in said),
                    tick.meminfo,
                    tick.driver_epoch,
                    json.loads(redaction.text(json.dumps(tick.samples))) if redact else tick.samples,
                )
                write_tick(file, tick)
                calls, devices = calls + len(said), max(devices, len(part.samples))
                progress(number + 1, ticks)
                if number + 1 < ticks:
                    sleep(interval_seconds)
            file.flush()
        try:
            os.link(new, path)  # unlike a rename it replaces nothing that has come into being meanwhile
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            new.rename(path)
    finally:
        plugin.close()
        if mine:  # not that of another capture to the same name
            new.unlink(missing_ok=True)
    return Summary(ticks, devices, calls, redaction.count, plugin.cards.driver_version)


def _tick(reading: Reading, at: float, due: frozenset[str], meminfo: str) -> Tick:
    part = reading.samples[0]
    batch = v1.SampleBatch(driver_version=part.driver_version, devices=part.samples)
    samples = json_format.MessageToDict(batch, preserving_proto_field_name=True)
    return Tick(part.taken_at_ns, at, tuple(sorted(due)), (), meminfo, part.driver_epoch, samples)


def _head(model: Nvidia, recorder: Recorder, plugin: Plugin, redact: bool) -> dict[str, Any]:
    return {
        "vendor": "nvidia",
        "driver_version": plugin.cards.driver_version,
        "versions": {name: _version(name) for name in ("xpulse", "nvidia-ml-py", "protobuf")} | {"python": platform.python_version()},
        "kernel": platform.release(),
        "machine": platform.machine(),
        "byteorder": sys.byteorder,
        "settings": model.model_dump(mode="json", exclude={"replay", "replay_times"}),
        "missing_symbols": sorted(recorder.missing),
        "left_out": list(LEFT_OUT),
        "redacted": redact,
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
