"""Records a driver into a bundle, with the settings that the agent would read it with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.contract import Env
from collectors.settings import PluginSettings
from schemas.identity import NodeRef
from xpulse import __version__
from xpulse.errors import UsageError, XPulseError

if TYPE_CHECKING:
    from collectors.nvidia.tape.capture import Summary
    from xpulse.settings import Settings


def record(settings: Settings, path: Path, seconds: int, *, redact: bool, progress: Callable[[int, int], None]) -> Summary:
    """One read a second. Raises XPulseError where there is no driver to read, UsageError where the file cannot be written."""
    from collectors.nvidia.tape.capture import NothingToCapture, capture

    plugin = settings.collectors.plugins.get("nvidia", PluginSettings())
    env = Env(NodeRef("capture", "capture"), "", __version__, 1_000_000_000)
    if path.exists():
        raise UsageError(f"{path} exists; give another name with --output, or remove it")
    try:
        return capture(path, plugin.settings, env, ticks=seconds, interval_seconds=1.0, redact=redact, progress=progress)
    except NothingToCapture as error:
        raise XPulseError(f"nothing to capture: {error}") from None
    except ValueError as error:
        raise UsageError(f"collectors.plugins.nvidia.settings: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; give another place with --output") from None
