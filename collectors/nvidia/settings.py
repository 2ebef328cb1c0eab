"""Settings of the nvidia plugin: kill switches for what costs driver time."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from schemas.section import Section


class Nvidia(Section):
    """Stands under collectors.plugins.nvidia.settings."""

    profiling: bool = True
    """Read the activity of SMs, tensor cores, memory and arithmetic pipes through GPM (Hopper and newer). Off: absent(not_supported)."""

    link_errors: bool = True
    """Read NVLink states and counters link by link, with the slow fields. Off: absent(not_supported)."""

    pcie_window: bool = True
    """Measure PCIe for 20 ms per direction, with the slow fields, on cards without usable byte counters. Off: absent(not_supported)."""

    partitions: bool = True
    """Read MIG instances and vGPUs as devices of their own. Off: only the cards are read."""

    events: bool = True
    """Hear NVML's event set (Xids and what else the driver reports at once). Off: Xids come from the kernel log only."""

    pci_check: bool = True
    """Compare the driver's cards with the PCI bus, with the slow fields. Off: a card that never came up is not missed."""

    processes: bool = True
    """List the processes on each card, which takes the driver's lock for milliseconds. Off: no processes are reported."""

    processes_every_seconds: float = Field(default=10.0, ge=1, le=3600)
    """Distance between two process lists."""

    command_lines: Literal["off", "redacted", "full"] = "off"
    """Send the command lines of processes: not at all, with what looks like a secret masked, or as they are. Reading them may hang
    for as long as a process hangs in the kernel."""

    proc_folder: Path = Path("/proc")
    """The host's /proc. In a container without hostPID: where it is mounted."""

    slow_read_seconds: float = Field(default=2.0, gt=0)
    """Where reading all cards with their slow fields takes longer, those are read at each second, fourth, eighth time they are due."""

    slow_call_seconds: float = Field(default=0.05, gt=0)
    """A process list that takes the driver longer is asked for half as often, each time again, until it is quick."""

    back_off_seconds: float = Field(default=300.0, gt=0)
    """Longest distance between two process lists that such a driver is given."""

    dcgm_endpoint: str = ""
    """Metrics page of a dcgm-exporter on this node (http://127.0.0.1:9400/metrics), for the activity of cards without GPM. Empty: none."""

    retry_seconds: float = Field(default=30.0, gt=0)
    """How long to wait before asking again where driver or library are missing."""

    replay: Path | None = None
    """Read this bundle (made by `xpulse capture`) instead of a driver, over and over. The option `--replay` of
    `xpulse agent` sets it."""

    replay_times: Literal["now", "original"] = "now"
    """Whether a replayed sample is of now, as consumers need it, or of when it was captured."""

    simulated: bool = False
    """The driver is a fake (option `--fake-nvml` of `xpulse up`): its readings are marked simulated wherever they are shown."""
