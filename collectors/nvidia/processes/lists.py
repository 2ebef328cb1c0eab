"""Takes the process lists of one card: which calls it has, in which layout, and whether what they say can be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from collectors.nvidia.processes.calls import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, Entry, Layout, ProcessCalls, Use
from collectors.nvidia.processes.parse import implausible
from collectors.nvidia.readings import reason
from collectors.nvidia.reply import NOT_SUPPORTED, Failed
from schemas.values import Reason

_USES: Final[tuple[Use, ...]] = ("compute", "graphics", "mps")
_NOT_HERE: Final = frozenset({INVALID_ARGUMENT, NOT_SUPPORTED, FUNCTION_NOT_FOUND})
_NO_PERMISSION: Final = 4


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG compute instance and its own handle."""

    uid: str
    handle: Any
    gpu_instance: int
    compute_instance: int


@dataclass(frozen=True, slots=True)
class Target:
    """A card whose processes are wanted. `memory_total_bytes` None where the card has no memory of its own. `instances` under MIG."""

    uid: str
    label: str
    handle: Any
    memory_total_bytes: int | None
    mig: bool = False
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True, slots=True)
class NoList:
    """Why there is no list. `implausible` text is for people."""

    reason: Reason | Literal["processes_implausible"]
    text: str


Lists = dict[Use, list[Entry]]


class ListReader:
    """Remembers what a card does not have, so that nothing is asked in vain, and which layout the library writes."""

    def __init__(self, calls: ProcessCalls) -> None:
        self._calls = calls
        self._missing: set[tuple[str, Use]] = set()
        self._layout: Layout = "_v3"

    def read(self, target: Target) -> Lists | NoList:
        """Every list of the card. A list that is there and cannot be read makes the whole unknown: it would hide processes."""
        if target.mig:
            return self._of_instances(target)
        return self._plausible(target, target.uid, target.handle)

    def forget(self) -> None:
        """The driver may be another now."""
        self._missing.clear()
        self._layout = "_v3"

    def _of_instances(self, target: Target) -> Lists | NoList:
        """The card's own lists name the instance of each process, to a caller who may see them all; else each instance is asked."""
        whole = self._plausible(target, target.uid, target.handle)
        if isinstance(whole, dict) and (not target.instances or all(e.gpu_instance is not None for part in whole.values() for e in part)):
            return whole
        if not target.instances:
            return whole
        joined: Lists = {}
        for instance in target.instances:
            part = self._plausible(target, instance.uid, instance.handle)
            if isinstance(part, NoList):
                return part
            for use, entries in part.items():
                named = (Entry(e.pid, e.memory_bytes, instance.gpu_instance, instance.compute_instance) for e in entries)
                joined.setdefault(use, []).extend(named)
        return joined

    def _plausible(self, target: Target, uid: str, handle: Any) -> Lists | NoList:
        lists = self._ask(uid, handle, self._layout)
        wrong = self._wrong(lists, target)
        if not wrong:
            return lists
        if self._layout == "_v3":
            # Drivers 535.43 to 535.86 wrote longer lines under the name _v3 (XuehaiPan/nvitop#79); _v2 stayed as it was.
            other = self._ask(uid, handle, "_v2")
            if isinstance(other, dict) and not self._wrong(other, target):
                self._layout = "_v2"
                return other
        return NoList("processes_implausible", wrong)

    def _wrong(self, lists: Lists | NoList, target: Target) -> str:
        if isinstance(lists, NoList):
            return ""
        return next((text for entries in lists.values() if (text := implausible(entries, target.memory_total_bytes))), "")

    def _ask(self, uid: str, handle: Any, layout: Layout) -> Lists | NoList:
        lists: Lists = {}
        for use in _USES:
            if (uid, use) in self._missing:
                continue
            answer = self._calls.listed(handle, use, layout)
            if answer == Failed(FUNCTION_NOT_FOUND) and layout == "_v3":
                answer = self._calls.listed(handle, use, "_v2")
                if not isinstance(answer, Failed):
                    self._layout = layout = "_v2"
            if isinstance(answer, Failed):
                if answer.code not in _NOT_HERE:
                    return NoList(reason(answer.code), f"its {use} processes cannot be read (NVML {answer.code})")
                self._missing.add((uid, use))
            else:
                lists[use] = answer
        return lists or NoList("not_supported", "the driver lists no processes of this card")


def uid_of(instances: Sequence[Instance], gpu_instance: int | None, compute_instance: int | None, card: str) -> str:
    """The instance that a process holds, else the card: several compute instances may share one GPU instance."""
    of_gpu = [one for one in instances if one.gpu_instance == gpu_instance]
    exact = [one for one in of_gpu if one.compute_instance == compute_instance]
    if exact:
        return exact[0].uid
    return of_gpu[0].uid if len(of_gpu) == 1 and compute_instance is None else card
