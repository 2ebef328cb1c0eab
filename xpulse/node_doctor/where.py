"""What every check is given: the settings, the file system from its root, the environment, and what the driver said."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from schemas.section import Section
from xpulse.node_doctor.look import DriverLook

if TYPE_CHECKING:
    from xpulse.settings import Settings

_Settings = TypeVar("_Settings", bound=Section)

_TIME_ERROR: Final = 5
"""adjtimex(2): the clock is not synchronised."""

_TIMEX_BYTES: Final = 256
"""More than struct timex has on any 64-bit Linux (208)."""


@dataclass(frozen=True)
class Where:
    """This machine, or a picture of one. `root` stands before every absolute path."""

    settings: Settings
    driver: DriverLook
    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def path(self, absolute: str | Path) -> Path:
        return self.root / str(absolute).lstrip("/")

    def open_error(self, absolute: str | Path, flags: int) -> int:
        """errno of opening it, 0 where it can be opened."""
        try:
            os.close(os.open(self.path(absolute), flags | os.O_CLOEXEC | os.O_NONBLOCK))
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def may(self, absolute: str | Path, mode: int) -> bool:
        """Whether it may be opened so, without opening it: a card's file would bring the card up."""
        return os.access(self.path(absolute), mode)

    def synchronised(self) -> bool | None:
        """Whether the kernel's clock follows another; None where the kernel does not say."""
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            state = libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))  # modes 0: it only reads
        except (OSError, AttributeError):
            return None
        return None if state < 0 else state != _TIME_ERROR

    @property
    def in_kubernetes(self) -> bool:
        return "KUBERNETES_SERVICE_HOST" in self.environment

    @property
    def in_container(self) -> bool:
        return self.in_kubernetes or self.path("/.dockerenv").exists() or self.path("/run/.containerenv").exists()

    def runs(self, plugin: str) -> bool:
        """Whether the settings have the agent run this plugin."""
        chosen = self.settings.collectors.plugins.get(plugin)
        return chosen is not None and chosen.enabled

    def of_plugin(self, plugin: str, model: type[_Settings]) -> _Settings:
        """The plugin's own settings; the defaults where they are wrong, which the check `plugins` says."""
        chosen = self.settings.collectors.plugins.get(plugin)
        try:
            return model.model_validate(chosen.settings if chosen else {})
        except ValidationError:
            return model()
