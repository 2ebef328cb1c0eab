"""The processes of every card of this node, taken together at their own pace; what could not be taken is not taken, never empty."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from collectors.events import Severity, device_event
from collectors.nvidia.processes.calls import ProcessCalls, Session
from collectors.nvidia.processes.identify import Identified, Identify
from collectors.nvidia.processes.lists import ListReader, Lists, NoList, Target, uid_of
from collectors.nvidia.processes.parse import merged, process_sample
from collectors.nvidia.processes.usage import UsageReader, unknown
from collectors.nvidia.watch.budget import Limits, Pace
from collectors.nvidia.watch.said import Said
from collectors.procfs.process import Proc
from collectors.procfs.redact import plain, redacted
from schemas.identity import NodeRef
from schemas.telemetry import v1

CommandLines = Literal["off", "redacted", "full"]

PATIENCE_ROUNDS: Final = 3
"""So many rounds in a row one card's list may be missing and with it the node's; then the others go on without it."""

_HARMLESS: Final = ("not_supported", "lost")
"""The card has no list, or nothing can run on it any more: the others' lists are complete without it."""

_SOURCE: Final = "nvidia"


@dataclass(slots=True)
class Taken:
    """What a tick gave. `samples` None: not due, or not to be had. `rejects` by (metric, reason)."""

    samples: tuple[v1.ProcessSample, ...] | None = None
    unknown: tuple[str, ...] = ()
    """Cards that `samples` says nothing of."""
    events: list[v1.DeviceEvent] = field(default_factory=list)
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)


class Processes:
    """Call `read` each tick; it asks the driver when a round is due. `clock` measures the calls, in monotonic seconds.

    Without `proc` nobody is looked for in /proc: the processes are simulated.
    """

    def __init__(
        self,
        session: Session,
        proc: Proc | None,
        node: NodeRef,
        limits: Limits,
        *,
        command_lines: CommandLines = "off",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pace = Pace(limits)
        self._slow_seconds = limits.slow_seconds
        self._proc, self._node, self._command_lines, self._clock = proc, node, command_lines, clock
        self._calls = ProcessCalls(session, clock)
        self._lists = ListReader(self._calls)
        self._usage = UsageReader(self._calls, window_seconds=limits.interval_seconds)
        self._identify = Identify(proc) if proc is not None else None
        self._failures: Counter[str] = Counter()
        self._said = Said()

    def read(self, targets: Iterable[Target], *, at: float, now_ns: int, deadline: float) -> Taken:
        """`at` is the tick in monotonic seconds, `now_ns` ns UTC; a round that passes `deadline`, of `clock`, is given up.

        `targets` is gone through only where a round is due.
        """
        taken = Taken()
        put_off = self.pace.put_off
        if not self.pace.due(at):
            if self.pace.put_off > put_off:
                taken.rejects["processes", "backed_off"] += 1
            return taken
        self._calls.slowest_seconds = 0.0
        taken.samples = self._round(tuple(targets), now_ns, deadline, taken)
        slowest = self._calls.slowest_seconds
        match self.pace.done(at, slowest):
            case "backed_off":
                text = (
                    f"a call for a process list took {slowest * 1000:.0f} ms (limit {self._slow_seconds * 1000:.0f} ms): lists are "
                    "taken less often until the driver is quicker; processes: false turns them off"
                )
                self._say(taken, now_ns, text, severity="info")
            case "recovered":
                self._say(taken, now_ns, "process lists are quick again and taken as often as wanted", severity="info")
            case None:
                pass
        return taken

    def forget(self) -> None:
        """The driver was loaded anew: what it had and lacked says nothing any more."""
        self._lists.forget()
        self._usage.forget(set())

    def _round(self, targets: Sequence[Target], now_ns: int, deadline: float, taken: Taken) -> tuple[v1.ProcessSample, ...] | None:
        lists: dict[str, Lists] = {}
        complete = True
        for target in targets:
            if self._clock() > deadline:
                taken.rejects["processes", "deadline"] += 1
                return None
            found = self._lists.read(target)
            if isinstance(found, NoList):
                complete &= self._without(target, found, now_ns, taken)
            else:
                lists[target.uid] = found
        identified = self._identify.look(_pids(lists)) if self._identify is not None else Identified({})
        if identified.ended:
            complete &= self._look_again(targets, lists, identified, now_ns, taken)
        self._say_namespace(identified, lists, now_ns, taken)
        for uid in lists:
            self._failures.pop(uid, None)
            self._said.over(uid)
        if not complete or not lists:
            return None
        samples: list[v1.ProcessSample] = []
        for target in targets:
            if target.uid in lists:
                samples += self._samples(target, lists[target.uid], identified, now_ns, taken)
        self._usage.forget({target.uid for target in targets})
        taken.unknown = tuple(target.uid for target in targets if target.uid not in lists)
        return tuple(samples)

    def _without(self, target: Target, missing: NoList, now_ns: int, taken: Taken) -> bool:
        """Whether the round goes on without this card."""
        taken.rejects["processes", missing.reason] += 1
        if missing.reason in _HARMLESS:
            return True
        self._failures[target.uid] += 1
        if missing.reason == "processes_implausible" and self._said.first(target.uid):
            text = (
                f"the process list of {target.label} cannot be true ({missing.text}) and is left out: library and bindings disagree on its "
                "layout; install the nvidia-ml-py of the driver's release"
            )
            self._say(taken, now_ns, text, target.uid)
        if self._failures[target.uid] <= PATIENCE_ROUNDS:
            return False
        if self._said.first(target.uid):
            text = f"{target.label}: {missing.text}; the process lists of the other cards go on without it"
            self._say(taken, now_ns, text, target.uid)
        return True

    def _look_again(self, targets: Sequence[Target], lists: dict[str, Lists], first: Identified, now_ns: int, taken: Taken) -> bool:
        """Numbers that no process has: what a second look does not list has just ended. False where the round fails for one that stays."""
        complete = True
        for target in targets:
            known = lists.get(target.uid)
            if known is None or first.ended.isdisjoint(_pids({target.uid: known})):
                continue
            again = self._lists.read(target)
            listed = first.ended & _pids({target.uid: again}) if isinstance(again, dict) else frozenset()
            stay = sorted(pid for pid in listed if self._proc is not None and not self._proc.has(pid))
            if stay:
                del lists[target.uid]
                missing = NoList("processes_implausible", f"no process has the number {', '.join(map(str, stay[:5]))}")
                complete &= self._without(target, missing, now_ns, taken)
                continue
            for entries in known.values():
                entries[:] = [entry for entry in entries if entry.pid not in first.ended]
        return complete

    def _say_namespace(self, identified: Identified, lists: dict[str, Lists], now_ns: int, taken: Taken) -> None:
        if identified.foreign:
            count = len(_pids(lists))
            taken.rejects["processes", "foreign_pid_namespace"] += count
            if self._said.first("namespace"):
                text = (
                    f"none of the {count} process ids that NVML gives exists here: the agent is in a PID namespace of its own, so names, "
                    "owners and containers are unknown; run it with hostPID: true, or mount the host's /proc and set proc_folder"
                )
                self._say(taken, now_ns, text)
        elif identified.processes:
            self._said.over("namespace")

    def _samples(self, target: Target, lists: Lists, identified: Identified, now_ns: int, taken: Taken) -> list[v1.ProcessSample]:
        listed = merged(lists)
        usage = unknown("not_supported")
        if listed and not target.mig:
            usage = self._usage.read(target.uid, target.handle, now_ns, taken.rejects)
        return [
            process_sample(
                uid_of(target.instances, one.gpu_instance, one.compute_instance, target.uid),
                one,
                process := identified.processes.get(one.pid),
                usage.of(one.pid),
                "no_permission" if target.mig else "not_supported",
                self._command_line(one.pid) if process is not None else "",
            )
            for one in listed.values()
        ]

    def _command_line(self, pid: int) -> str:
        if self._command_lines == "off" or self._proc is None:
            return ""
        arguments = self._proc.command_line(pid)
        return redacted(arguments) if self._command_lines == "redacted" else plain(arguments)

    def _say(self, taken: Taken, now_ns: int, text: str, uid: str = "", severity: Severity = "warning") -> None:
        taken.events.append(device_event(self._node, _SOURCE, "vendor_log", now_ns, text, severity=severity, uid=uid))


def _pids(lists: dict[str, Lists]) -> frozenset[int]:
    return frozenset(entry.pid for of_card in lists.values() for entries in of_card.values() for entry in entries)
