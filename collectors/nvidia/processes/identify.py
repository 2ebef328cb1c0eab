"""Finds out in /proc who the listed process ids are, and whether the numbers mean the same here as in the driver.

NVML names processes by their number on the host. In a container without the host's PID namespace none of them exists, or worse: one
exists by chance and is somebody else. So outside the host's namespace either all are found or none is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from collectors.procfs.process import Proc, Process


@dataclass(frozen=True, slots=True)
class Identified:
    """`processes` by id. `ended`: the host has no such process. `foreign`: the ids are of another namespace than this /proc."""

    processes: Mapping[int, Process]
    ended: frozenset[int] = frozenset()
    foreign: bool = False


class Identify:
    """Remembers who was listed last: the driver still names a process while it takes it down."""

    def __init__(self, proc: Proc) -> None:
        self._proc = proc
        self._known: dict[int, Process] = {}

    def look(self, pids: Iterable[int]) -> Identified:
        """Everything /proc says of these; call it once a round with all of them."""
        wanted = set(pids)
        view = self._proc.view()
        found = {pid: process for pid in wanted if (process := self._proc.process(pid)) is not None}
        missing = wanted - set(found)
        if view == "other":
            self._known = {}
            return Identified({} if missing else found, foreign=bool(wanted) and not found)
        found |= {pid: self._known[pid] for pid in missing if pid in self._known}
        self._known = found
        return Identified(found, frozenset(missing - set(found)) if view == "host" else frozenset())
