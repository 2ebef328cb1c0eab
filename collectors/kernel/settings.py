"""Settings of the kernel plugin: where the log is read, how lines become events, and what a site thinks otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from collectors.kernel.lines import LineRule, chosen
from collectors.nvidia.xid.verdict import Override, overridden
from schemas.section import Section
from schemas.xid import catalogue


class Kernel(Section):
    """Stands under collectors.plugins.kernel.settings. Times are seconds."""

    source: Literal["auto", "kmsg", "journald"] = "auto"
    """Where the log is read: /dev/kmsg, the journal, or (auto) the first where the second may not be read either."""

    kmsg_path: Path = Path("/dev/kmsg")
    """The kernel's log device; in a container where the host's is mounted."""

    journalctl: str = Field(default="journalctl", min_length=1)
    """Name or path of systemd's journalctl."""

    state_dir: Path | None = None
    """Folder of the file that says how far the log was read. Empty: the agent's own state folder."""

    first_look_seconds: float = Field(default=300.0, ge=0)
    """What is older than this when it is read is marked as backlog, and only what still needs a reset or a reboot keeps its severity."""

    together_seconds: float = Field(default=300.0, ge=1, le=3600)
    """Lines of the same error on the same device are one event as long as no silence between them is longer."""

    longest_seconds: float = Field(default=3600.0, ge=60)
    """After so long a new event begins although the lines go on."""

    cause_seconds: float = Field(default=30.0, ge=1)
    """How far a symptom may be from the error that caused it, before or after."""

    hold_seconds: float = Field(default=2.0, ge=0, le=30)
    """How long a symptom waits for its cause before it is sent."""

    update_seconds: float = Field(default=10.0, ge=1)
    """The least time between two versions of an event whose count grows."""

    accept_user_lines: bool = False
    """Also take what user space wrote into /dev/kmsg (drills: `echo '<3>NVRM: Xid ...' > /dev/kmsg` as root)."""

    xid_overrides: dict[int, Override] = Field(default_factory=dict)
    """What this site thinks of an Xid, by its number: {13: {severity: info, action: check_application}}."""

    rules: dict[str, LineRule] = Field(default_factory=dict)
    """Own rules for lines of any driver, by name."""

    enable: tuple[str, ...] = ()
    """Names of built-in rules to switch on that are off, because the form of their lines was never seen on a real machine."""

    disable: tuple[str, ...] = ()
    """Names of built-in rules to switch off."""

    retry_seconds: float = Field(default=30.0, gt=0)
    """How long to wait before asking again where the log may not be read."""

    @model_validator(mode="after")
    def _consistent(self) -> Kernel:
        if self.cause_seconds > self.together_seconds:
            raise ValueError(
                f"cause_seconds {self.cause_seconds:g} must not exceed together_seconds {self.together_seconds:g}: "
                "events are forgotten by then"
            )
        overridden(catalogue(), self.xid_overrides)
        chosen(self.rules, self.enable, self.disable)
        return self
