"""The plugin on a fake driver, alone on its machine, with a clock that the test moves."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collectors.contract import Env, Reading, Ready
from collectors.nvidia.plugin import Plugin
from collectors.nvidia.settings import Nvidia
from collectors.worker import FAST, FAST_AND_SLOW
from schemas.catalogue import BY_NUMBER, CATALOGUE
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import REASON_OF_NUMBER
from tests.fakes import nvml

ENV = Env(NodeRef("c", "n"), "boot", "0", 10**9)
ALONE: dict[str, Any] = {"events": False, "pci_check": False, "processes": False}


class Rig:
    """One plugin, probed. `at` is its monotonic clock in seconds; each read moves it by one."""

    def __init__(self, state: nvml.State, *, meminfo: Path | None = None, **settings: Any) -> None:
        self.state, self.at = state, 100.0
        paths: dict[str, Any] = {} if meminfo is None else {"meminfo": meminfo}
        self.plugin = Plugin(Nvidia.model_validate(ALONE | settings), ENV, monotonic=lambda: self.at, **paths)
        found = self.plugin.probe()
        assert isinstance(found, Ready), found
        self.last = Reading()

    def read(self, *, slow: bool = True, seconds: float = 1.0) -> list[v1.DeviceSample]:
        self.at += seconds
        self.last = self.plugin.read(FAST_AND_SLOW if slow else FAST, time.monotonic() + 60)
        return list(self.last.samples[0].samples)

    def card(self, *, slow: bool = True) -> v1.DeviceSample:
        """The first card's sample, after a read that gives activity something to compare with."""
        self.read()
        return self.read(slow=slow)[0]

    def said(self) -> list[str]:
        """Kinds of the events of the last read."""
        return [kind(event) for event in self.events()]

    def events(self) -> list[v1.DeviceEvent]:
        return [event for event in self.last.events if isinstance(event, v1.DeviceEvent)]


def kind(event: v1.DeviceEvent) -> str:
    return v1.DeviceEventKind.Name(event.kind).removeprefix("DEVICE_EVENT_KIND_").lower()


def absent(sample: v1.DeviceSample) -> dict[str, str]:
    """Reason by field."""
    return {BY_NUMBER[n].name: REASON_OF_NUMBER[a.reason] for a in sample.absences for n in a.field_number}


def values(sample: v1.DeviceSample) -> Mapping[str, float]:
    """What has a value."""
    return {metric.name: getattr(sample, metric.name) for metric in CATALOGUE if sample.HasField(metric.name)}
