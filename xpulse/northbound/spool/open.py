"""From settings to an opened spool, or to the words that say why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpulse.northbound.spool.folder import InUse, SpoolFolder

if TYPE_CHECKING:
    from pathlib import Path

    from xpulse.northbound.spool.settings import Spool


def open_spool(settings: Spool, state: Path, *, embedded: bool) -> tuple[SpoolFolder | None, str]:
    """The spool in its folder (`spool` in `state` unless set), and "" or what is wrong with it.

    None where it is off, where the bus is the one inside `xpulse up` (`embedded`: messages of another run are no use to it), and where
    the folder cannot be used: an agent that can read its devices and reach its bus does not stop for want of a disk. Raises InUse where
    another process has it: two agents would send each other's messages.
    """
    if not settings.enabled or embedded:
        return None, ""
    folder = settings.directory or state / "spool"
    try:
        return SpoolFolder(folder, max_bytes=settings.max_bytes, segment_bytes=settings.segment_bytes), ""
    except OSError as error:
        return None, f"no spool: {folder} cannot be used ({error.strerror}); set northbound.spool.directory or state_dir"


__all__ = ["InUse", "open_spool"]
