"""Collector plugins that misbehave on purpose; entry points are `tests.fakes.plugins:<name>`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collectors.contract import API, Env, NodeReading, Reading, Ready, Unavailable
from schemas.builder import SampleBuilder
from schemas.catalogue import FAST, SLOW, Cadence
from schemas.telemetry import v1


class Fake:
    """Two well devices. Settings: `devices` (count), `flag` (a file whose presence changes what a subclass does)."""

    api = API

    def __init__(self, settings: Mapping[str, Any], env: Env) -> None:
        unknown = set(settings) - {"devices", "flag", "retry_s"}
        if unknown:
            raise ValueError(f"unknown key {sorted(unknown)[0]!r}; known: devices, flag, retry_s")
        self.settings, self.env = settings, env
        self.reads = 0

    @property
    def flagged(self) -> bool:
        return "flag" in self.settings and Path(self.settings["flag"]).exists()

    def uids(self) -> list[str]:
        return [f"fake:{i}" for i in range(self.settings.get("devices", 2))]

    def probe(self) -> Ready | Unavailable:
        return Ready(tuple(self.uids()))

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        self.reads += 1
        samples = []
        for index, uid in enumerate(self.uids()):
            builder = SampleBuilder(uid, index)
            for metric in (*FAST, *(SLOW if "slow" in due else ())):
                builder.absent(metric.name, "not_supported")
            builder.set("power_watts", 300.0 + self.reads)
            if "slow" in due:
                builder.set("power_limit_watts", 700.0)
            info = v1.DeviceInfo(uid=uid, vendor="fake", model="F1", serial=uid, index=index, kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR)
            samples.append(builder.info(info).build())
        reading = NodeReading(time.time_ns(), tuple(samples), boot_id=self.env.boot_id, driver_version="1.0")
        return Reading((reading,), (), {("fan_ratio", "not_supported"): len(samples)})

    def close(self) -> None:
        pass


class Hangs(Fake):
    """Never comes back from its third read while the flag is there."""

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        if self.reads >= 2 and self.flagged:
            time.sleep(3600)
        return super().read(due, deadline)


class Raises(Fake):
    """Its third read raises while the flag is there."""

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        if self.reads >= 2 and self.flagged:
            raise OSError("the bus is on fire")
        return super().read(due, deadline)


class Dies(Fake):
    """Its third read ends the process as a broken vendor library does."""

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        if self.reads >= 2 and self.flagged:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().read(due, deadline)


class Missing(Fake):
    """Unavailable while the flag is there."""

    def probe(self) -> Ready | Unavailable:
        if self.flagged:
            return Unavailable("no driver; load it", float(self.settings.get("retry_s", 0.05)))
        return super().probe()


class Shrinks(Fake):
    """Loses its last device while the flag is there."""

    def uids(self) -> list[str]:
        return super().uids()[: -1 if self.flagged else None]


class Newer(Fake):
    """Speaks a contract that this agent does not know."""

    api = 99


not_callable = 3
