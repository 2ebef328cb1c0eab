"""Keeps how far the kernel log was read, and which events are open, in one small file that is replaced as a whole.

A crash of the machine may lose the file's last version and does no harm: that is another boot, whose log is read from its beginning.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from collectors.kernel.source import Position
from schemas.identity import NodeRef

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """What the file holds. `groups` is collectors.nvidia.xid.keep's."""

    boot_id: str
    position: Position
    driver_branch: int | None
    groups: dict[str, Any]
    clock_off_us: int = 0
    """collectors.kernel.clock.Clock's."""
    boot_ns: int = 0
    """When the boot was, ns UTC, as the lines that were told are dated; 0: not known."""


class Store:
    """One file for each node: two agents of different nodes may share a folder."""

    def __init__(self, folder: Path, node: NodeRef) -> None:
        self.path = folder / f"kernel-{quote(node.cluster, safe='')}-{quote(node.node, safe='')}.json"

    def load(self) -> Kept | None:
        """None where there is no file. Raises ValueError where it cannot be understood, OSError where it cannot be read."""
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        if not isinstance(raw, dict) or raw.get("version") != _VERSION:
            raise ValueError(f"{self.path} is not of version {_VERSION}")
        try:
            sequence, monotonic_us, cursor = raw["position"]
            branch = raw["driver_branch"]
            position = Position(int(sequence), int(monotonic_us), str(cursor))
            branch = None if branch is None else int(branch)
            off_us, boot_ns = (int(raw.get(name, 0)) for name in ("clock_off_us", "boot_ns"))  # older files have none
            return Kept(str(raw["boot_id"]), position, branch, dict(raw["groups"]), off_us, boot_ns)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.path} holds nonsense: {error!r}") from None

    def save(self, kept: Kept) -> None:
        """Replace the file. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "version": _VERSION,
            "boot_id": kept.boot_id,
            "position": list(kept.position),
            "driver_branch": kept.driver_branch,
            "groups": kept.groups,
            "clock_off_us": kept.clock_off_us,
            "boot_ns": kept.boot_ns,
        }
        fresh = self.path.with_suffix(f".{os.getpid()}.new")
        fresh.touch(mode=0o600)  # process names stand in it
        fresh.write_text(json.dumps(data), encoding="utf-8")
        fresh.replace(self.path)
