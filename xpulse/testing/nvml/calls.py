"""Reads how often each NVML symbol was called, from the file that the library keeps where $FAKE_NVML_CALLS names one."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

_RECORD: Final = struct.Struct("=56sQ")


def calls(path: Path) -> dict[str, int]:
    """Calls by symbol since the file was made, of all processes that use it; without those that were never called.

    The library adds to the file as it is called: read it before and after, and the difference is what happened between.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    records = _RECORD.iter_unpack(data[: len(data) - len(data) % _RECORD.size])
    return {name.rstrip(b"\0").decode(): count for name, count in records if count}
