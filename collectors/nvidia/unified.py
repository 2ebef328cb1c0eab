"""Memory of chips that share it with the host (GB10, Thor): NVML knows none of their own, so the host's figures stand, and are marked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from collectors.nvidia.reply import FAILED, NOT_SUPPORTED, UNKNOWN, Failed, Replies

MEMINFO: Final = Path("/proc/meminfo")


class Readable(Protocol):
    """A file's text: a Path, or what stands in for one."""

    def read_text(self) -> str: ...


_NAMES: Final = ("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes")


def is_unified(replies: Replies) -> bool:
    """Whether the card says that it has no memory of its own: not supported, or none at all."""
    total = replies.get("memory_total_bytes")
    return total == 0 or (isinstance(total, Failed) and total.code == NOT_SUPPORTED)


def set_unified(replies: Replies, read: Callable[[], str]) -> None:
    """Put the host's memory in place of the card's; `read` gives /proc/meminfo."""
    try:
        found = unified_memory(read())
    except OSError:
        found = None
    if found is None:
        replies.update(dict.fromkeys(_NAMES, FAILED[UNKNOWN]))
        return
    replies["memory_total_bytes"], replies["memory_used_bytes"] = found
    replies["memory_reserved_bytes"] = FAILED[NOT_SUPPORTED]


def unified_memory(meminfo: str) -> tuple[int, int] | None:
    """Total and used bytes: MemTotal, and MemTotal without MemAvailable. Swap is no device memory. None where either is not told."""
    kibibytes: dict[str, int] = {}
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        if name in ("MemTotal", "MemAvailable"):
            number = rest.split()
            if number and number[0].isdecimal():
                kibibytes[name] = int(number[0])
    total, available = kibibytes.get("MemTotal"), kibibytes.get("MemAvailable")
    if not total or available is None or available > total:
        return None
    return total * 1024, (total - available) * 1024
