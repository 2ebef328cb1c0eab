"""Who a process is: /proc/<pid> of one host, read without the locks that a stuck process holds.

Only `command_line` takes the process's memory lock (mmap_lock), which a process stuck in a page fault keeps: a caller that must not
hang does not ask for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

View = Literal["host", "part", "other"]

_INITIAL_NAMESPACE: Final = "pid:[4026531836]"
"""PROC_PID_INIT_INO of linux/proc_ns.h, 0xEFFFFFFC."""

_COMM_LENGTH: Final = 15
"""TASK_COMM_LEN - 1 of linux/sched.h: the kernel cuts longer names."""

_READ_BYTES: Final = 16_384


@dataclass(frozen=True, slots=True)
class Process:
    """One process. `started_at_ns` is ns UTC; with the boot id and `pid` it tells it from every other. `user_id` None: not readable."""

    pid: int
    started_at_ns: int
    name: str
    namespace_pids: tuple[int, ...]
    user_id: int | None
    cgroup: str


class Proc:
    """A /proc folder: this host's, or the host's mounted into a container."""

    def __init__(self, root: Path = Path("/proc"), *, ticks_per_second: int | None = None) -> None:
        self.root = root
        self._ticks_per_second = ticks_per_second or os.sysconf("SC_CLK_TCK")
        self._booted_at_ns: int | None = None

    def view(self) -> View:
        """host: it shows every process of the host; part: the host's numbers, some hidden (hidepid); other: another PID namespace's.

        The kernel's own pid 2 is kthreadd, and it is in the initial namespace alone.
        """
        if self._read(2, "comm").strip() == "kthreadd":
            return "host"
        try:
            return "part" if str((self.root / "self/ns/pid").readlink()) == _INITIAL_NAMESPACE else "other"
        except OSError:
            return "other"

    def has(self, pid: int) -> bool:
        return (self.root / str(pid)).exists()

    def process(self, pid: int) -> Process | None:
        """None where there is none, or it ended while it was read."""
        ticks = start_ticks(self._read(pid, "stat"))
        if ticks is None:
            return None
        status = status_fields(self._read(pid, "status"))
        return Process(
            pid=pid,
            started_at_ns=self.booted_at_ns() + ticks * 1_000_000_000 // self._ticks_per_second,
            name=self._name(pid),
            namespace_pids=tuple(int(part) for part in status.get("NSpid", "").split() if part.isdecimal()),
            user_id=_first_number(status.get("Uid", "")),
            cgroup=cgroup_path(self._read(pid, "cgroup")),
        )

    def command_line(self, pid: int) -> tuple[str, ...]:
        """Its arguments; empty where they cannot be read. May wait for as long as the process is stuck in the kernel."""
        return tuple(self._read(pid, "cmdline").rstrip("\0").split("\0"))

    def booted_at_ns(self) -> int:
        """Time of boot, ns UTC; read once, because it moves when the clock is set and a process must keep its identity."""
        if self._booted_at_ns is None:
            self._booted_at_ns = boot_seconds((self.root / "stat").read_text(errors="replace")) * 1_000_000_000
        return self._booted_at_ns

    def _name(self, pid: int) -> str:
        name = self._read(pid, "comm").rstrip("\n")
        if name and len(name.encode(errors="replace")) < _COMM_LENGTH:
            return name
        try:
            program = (self.root / str(pid) / "exe").readlink().name.removesuffix(" (deleted)")
        except OSError:
            return name
        return program if program.startswith(name) else name

    def _read(self, pid: int, what: str) -> str:
        try:
            with (self.root / str(pid) / what).open("rb", buffering=0) as file:
                return file.read(_READ_BYTES).decode(errors="replace")
        except OSError:
            return ""


def start_ticks(stat: str) -> int | None:
    """Field 22 of /proc/<pid>/stat, clock ticks after boot. The name in field 2 may hold spaces and parentheses: the last one ends it."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[19].isdecimal() else None


def status_fields(status: str) -> Mapping[str, str]:
    """`Name: value` lines of /proc/<pid>/status; of equal names the first."""
    found: dict[str, str] = {}
    for line in status.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name, value.strip())
    return found


def cgroup_path(cgroup: str) -> str:
    """The path that names container and pod: of the memory controller (v1), of the unified hierarchy, else of any controller that has one.

    Empty where the text has no line of a cgroup.
    """
    paths: dict[str, str] = {}
    for line in cgroup.split("\n"):
        number, colon, rest = line.partition(":")
        controllers, second, path = rest.partition(":")
        if not colon or not second:
            continue
        path = path.removesuffix(" (deleted)")
        if number == "0" and not controllers:
            paths["unified"] = path
        for controller in controllers.split(","):
            paths.setdefault(controller, path)
    first = ("memory", "unified", "name=systemd")
    candidates = [paths[name] for name in (*first, *sorted(set(paths) - set(first))) if paths.get(name)]
    return next((path for path in candidates if path != "/"), candidates[0] if candidates else "")


def boot_seconds(stat: str) -> int:
    """`btime` of /proc/stat, seconds UTC; ValueError where the text has none."""
    for line in stat.split("\n"):
        name, _, value = line.partition(" ")
        if name == "btime" and value.strip().isdecimal():
            return int(value)
    raise ValueError("/proc/stat has no btime: it is not the /proc of a Linux host")


def _first_number(text: str) -> int | None:
    first = text.split()[:1]
    return int(first[0]) if first and first[0].isdecimal() else None
