"""Settings of the node agent: how often it reads, how long it waits, and which plugins it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from collectors.contract import OnUnavailable
from collectors.maintenance import DEFAULT_LABELS
from schemas.section import Section

HOLD_NO_DRIVER: Final = frozenset({"kernel", "dcgm"})
"""Plugins of ours that keep no driver open: they stay while the driver is let go."""


class PluginSettings(Section):
    """One plugin; its own keys stand under `settings` and are checked by the plugin itself."""

    enabled: bool = True
    """Kill switch: false keeps the plugin's process from being started."""

    on_unavailable: OnUnavailable = "retry"
    """What the agent does where the source cannot be read: fail (exit 1 with the reason), skip (go on without it), retry (later)."""

    release_on_maintenance: bool | None = None
    """Whether its process ends while somebody asks for the driver (see maintenance). Empty: yes, but for
    kernel and dcgm, which hold none."""

    priority: int | None = None
    """Where two plugins see the same device, the one with the larger number speaks for it. Empty: 50 for dcgm, 100 for every other."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """The plugin's own settings; see its page in the reference."""


class MaintenanceSettings(Section):
    """Who may ask the agent to let the driver go: any open client blocks a reset of the GPU, a MIG change and a driver upgrade.
    Besides these, the signal SIGUSR2 asks, and a second one ends it."""

    lease_file: Path | None = None
    """While this file exists the driver is let go; its first line may say why. Empty: `maintenance` in the state folder."""

    node_labels: dict[str, tuple[str, ...]] = Field(default_factory=lambda: dict(DEFAULT_LABELS))
    """Labels of the Kubernetes node and the values of each that ask."""

    watch_node: Literal["auto", "off"] = "auto"
    """auto: read the node's labels where the agent runs as a pod. off: never talk to the API server."""

    max_seconds: float = Field(default=1800.0, gt=0, le=7 * 24 * 3600)
    """A request that nobody ends is over after so long: the plugins come back, and say so."""


class Collectors(Section):
    """The agent. Times are seconds; `plugins` maps the name of an installed plugin to its settings."""

    interval_seconds: float = Field(default=1.0, ge=0.05, le=3600)
    """Distance between two reads; reads are aligned to whole multiples of it on the wall clock."""

    slow_interval_seconds: float = Field(default=60.0, gt=0, le=3600)
    """Distance between two reads of the slow fields (limits, ECC, link state)."""

    full_every: int = Field(default=60, ge=1, le=10_000)
    """Every so many batches each device's sample is sent whole, with its slow fields, absences and identity."""

    read_deadline_seconds: float = Field(default=5.0, gt=0)
    """How long one read of all devices may take; devices not reached by then are absent(error) in this tick."""

    hang_seconds: float = Field(default=10.0, gt=0)
    """A plugin process that says nothing for so long hangs: it is reported, killed and started again."""

    restart_min_seconds: float = Field(default=1.0, gt=0)
    """First wait before a plugin process that died or hung is started again; it doubles with each failure in a row."""

    restart_max_seconds: float = Field(default=60.0, gt=0)
    """Longest wait before a plugin process is started again."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Where this node stands (rack, pdu, pool, site, ...): published with the node's inventory."""

    maintenance: MaintenanceSettings = MaintenanceSettings()
    """Letting the driver go on request."""

    plugins: dict[str, PluginSettings] = Field(default_factory=lambda: {"nvidia": PluginSettings(), "kernel": PluginSettings()})
    """Which plugins run, by the name of their entry point in the group xpulse.collectors."""

    @model_validator(mode="after")
    def _deadline_before_hang(self) -> Collectors:
        if self.read_deadline_seconds >= self.hang_seconds:
            raise ValueError(
                f"read_deadline_seconds {self.read_deadline_seconds:g} must be below hang_seconds {self.hang_seconds:g}: "
                "a read within its deadline would be killed as hung"
            )
        if self.restart_min_seconds > self.restart_max_seconds:
            raise ValueError(
                f"restart_min_seconds {self.restart_min_seconds:g} must not exceed restart_max_seconds {self.restart_max_seconds:g}"
            )
        return self
