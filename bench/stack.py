"""The line's roles as processes of their own, started as `xpulse up` starts them, with what each has done and what CPU it took."""

from __future__ import annotations

import json
import os
import selectors
import time
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.load import CLUSTER
from xpulse.local.child import Child, Spec
from xpulse.local.plan import STREAMS, Options, Where, environment
from xpulse.local.runfiles import read_ports

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


class Broken(Exception):
    """A process of the line did not come up, or ended by itself."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a role says of itself: records taken in and published, dead letters, and whether it owns its partitions."""

    ready: bool
    processed: int
    published: int
    dead_letters: int
    lost_ranges: int


@dataclass(frozen=True, slots=True)
class Environment:
    """Where the line runs. `others` are processes beside the roles whose CPU is told as well: the broker, the database."""

    brokers: str
    embedded: bool
    store: str
    settings: Mapping[str, str]
    others: Mapping[str, int]


class Stack:
    """attribute, detect, alert and the store's writer. Use as a context manager; `folder` gets state and logs."""

    def __init__(self, place: Environment, runner: str, folder: Path) -> None:
        self._place = place
        self._folder = folder
        # Event time is not the wall clock's here: a node is "silent" for as long as the line takes for what came before.
        settings = {"XPULSE_STREAMS__DETECT__SILENCE_SECONDS": "3600", **place.settings}
        where = Where(place.brokers, place.embedded, place.store, folder, CLUSTER, extra=settings)
        variables = environment(Options(runner=runner), where)
        commands = {**{name: ("stream", name) for name in STREAMS}, place.store: ("sink", place.store)}
        self._children = {
            name: Child(Spec(name, ("-m", "xpulse.cli.main", *command), variables), folder / f"{name}.log")
            for name, command in commands.items()
        }
        self._ports: dict[str, int] = {}

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(self._children)

    def __enter__(self) -> Stack:
        try:
            for child in self._children.values():
                child.start(time.monotonic())
            self._await_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def done(self, role: str) -> Done:
        """What the role has done until now. Raises Broken where it has ended."""
        body = self._ask(role)
        return Done(
            ready=bool(body["ready"]),
            processed=int(body["processed_total"]),
            published=int(body["published_total"]),
            dead_letters=int(body["dead_letters_total"]),
            lost_ranges=len(body["lost_ranges"]),
        )

    def dropped(self, role: str) -> int:
        """Items that the role counts as dropped, all reasons together."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[role]}/metrics", timeout=10) as reply:
            lines = reply.read().decode().splitlines()
        return round(sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("xpulse_dropped_total{")))

    def cpu_seconds(self) -> dict[str, float]:
        """User and system time of each role, and of the processes beside them."""
        found = {name: cpu_seconds(child.pid) for name, child in self._children.items() if child.pid}
        return found | {name: cpu_seconds(pid) for name, pid in self._place.others.items()}

    def close(self) -> None:
        stop_all(self._children.values())

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        waiting = list(self._children)
        while waiting and time.monotonic() < deadline:
            time.sleep(0.1)
            ports = read_ports(self._folder, list(self._children))
            self._ports = {role: port for role, port in ports.items() if port}
            waiting = [role for role in waiting if role not in self._ports or not self._is_ready(role)]
        if waiting:
            role = waiting[0]
            raise Broken(f"{role} was not ready within {START_SECONDS:.0f} s; its last words:\n{self._children[role].tail()}")

    def _is_ready(self, role: str) -> bool:
        try:
            return self.done(role).ready
        except OSError:  # the port is written a moment before it listens
            return False

    def _ask(self, role: str) -> dict[str, Any]:
        child = self._children[role]
        if child.gone():
            raise Broken(f"{role} ended by itself; its last words:\n{child.tail()}")
        with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[role]}/status", timeout=30) as reply:
            body: dict[str, Any] = json.load(reply)
        return body


class EmbeddedBus:
    """The embedded bus in its own process, as the supervisor runs it."""

    def __init__(self, folder: Path) -> None:
        self._child = Child(Spec("bus", ("-m", "xpulse.local.busprocess")), folder / "bus.log")
        self.brokers = ""

    @property
    def pid(self) -> int:
        if self._child.pid is None:
            raise Broken(f"the embedded bus ended by itself; its last words:\n{self._child.tail()}")
        return self._child.pid

    def __enter__(self) -> EmbeddedBus:
        reader, writer = os.pipe()
        self._child.start(time.monotonic(), stdout=writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream, selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            self.brokers = (stream.readline() if selector.select(START_SECONDS) else b"").decode().strip()
        if not self.brokers:
            stop_all([self._child])
            raise Broken(f"the embedded bus did not start; its last words:\n{self._child.tail()}")
        return self

    def __exit__(self, *_: object) -> None:
        stop_all([self._child])


def stop_all(children: Iterable[Child]) -> None:
    """Ask all to end, then end what is left."""
    children = list(children)
    for child in children:
        child.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline and not all(child.gone() for child in children):
        time.sleep(0.05)
    for child in children:
        child.kill()


def cpu_seconds(pid: int) -> float:
    """utime + stime of a process with all its threads (proc(5): the 14th and 15th field; the second may hold blanks)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
