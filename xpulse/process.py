"""What every process of ours needs of the system: a stop event set by signals, dying with its parent, and its proportional memory."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import threading
from pathlib import Path
from typing import Final

PARENT: Final = "_XPULSE_PARENT"
"""Set by the supervisor to its pid: the child dies with it, even by kill -9 (not an XPULSE_* name: it is no setting)."""

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h


def die_with_parent() -> None:
    """Have the kernel kill this process when its supervisor dies; nothing where no supervisor started it."""
    parent = os.environ.get(PARENT)
    if not parent:
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):  # it died before the call above
        os._exit(1)


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set; a second one ends the process at once."""
    stop = threading.Event()

    def handle(number: int, _frame: object) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
    return stop


def collect_garbage_seldom() -> None:
    """Leave what was imported out of garbage collection, and have it look at the rest less often.

    Python's default is every 700 new objects. Without any collecting a store writer's batches took a fifth less time, at this pace a
    seventh (measured once each). Nearly all of its objects go by reference counting; the few cycles there are wait a little longer.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def boot_id() -> str:
    """The kernel's boot id, 36 characters; empty where /proc does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def tree(pid: int) -> list[int]:
    """The process and its living descendants."""
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(c) for c in (task / "children").read_text(encoding="ascii").split()]
        except (OSError, ValueError):
            continue
    return found


def pss_bytes(pid: int) -> int:
    """Proportional set size of a process tree, bytes: shared pages are counted once over all who share them."""
    total = 0
    for each in tree(pid):
        try:
            for line in Path(f"/proc/{each}/smaps_rollup").read_text(encoding="ascii").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total
