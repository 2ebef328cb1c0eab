"""Runs the local stack: starts the processes in order, restarts the dead, feeds the screen, and takes everything down again."""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from xpulse.errors import GIVEN_UP, ProblemFound
from xpulse.local.child import Child, Spec
from xpulse.local.plan import Options, Where, environment, specs
from xpulse.local.runfiles import read_ports, write_bus, write_pid

if TYPE_CHECKING:
    from xpulse.settings import Settings

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 3.5
"""From SIGTERM to SIGKILL: Ctrl-C ends everything within 5 s."""

BUS_START_SECONDS: Final = 10.0
STAGE_SECONDS: Final = 2.5
"""A later stage starts after this long at the latest: on two cores ten interpreters starting at once delay the first row."""

MEASURE_SECONDS: Final = 3.0


class Supervisor:
    """Owns the processes of one local stack. Call `start`, then `step` often, then `stop`; single-threaded."""

    def __init__(self, settings: Settings, options: Options, where: Where, note: Callable[[str], None]) -> None:
        self._settings = settings
        self._options = options
        self.where = where
        self._note = note
        self._logs = where.state / "logs"
        self._logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in self._logs.glob("*.log"):
            old.unlink()
        self._bus: Child | None = None
        self.bus_restarts = 0
        self.children: list[Child] = []
        self._stage_at = 0.0
        self._measured_at = 0.0
        self._restarts: dict[str, int] = {}
        self.on_new_bus: Callable[[str], None] | None = None
        """Called with the address each time the embedded bus has come up, before any role starts."""

    def everything(self) -> list[Child]:
        return ([self._bus] if self._bus else []) + self.children

    def start(self, now: float) -> None:
        """Start the bus (where it is ours) and the first stage. Raises ProblemFound where the bus does not come up."""
        if self.where.embedded:
            self._start_bus(now)
        roles = specs(self.where, environment(self._options, self.where))
        self.children = [Child(spec, self._logs / f"{spec.name}.log") for spec in roles]
        self._stage_at = now
        self._start_due(now, rows=False)

    def _start_bus(self, now: float) -> None:
        self._bus = Child(Spec("bus", ("-m", "xpulse.local.busprocess")), self._logs / "bus.log")
        reader, writer = os.pipe()
        self._bus.start(now, stdout=writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream, selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            line = stream.readline() if selector.select(BUS_START_SECONDS) else b""
        if not line.strip():
            self._bus.kill()
            raise ProblemFound(f"the embedded bus did not start within {BUS_START_SECONDS:.0f} s; its last words:\n{self._bus.tail()}")
        self.where = replace(self.where, brokers=line.decode().strip())
        self._write_pid(self._bus)
        write_bus(self.where.state, self.where.brokers)
        if self.on_new_bus:
            self.on_new_bus(self.where.brokers)

    def _start_due(self, now: float, *, rows: bool) -> None:
        """Start the stages whose time has come; a first row brings the next stage at once."""
        elapsed = now - self._stage_at
        for child in self.children:
            due = child.spec.stage == 0 or elapsed >= child.spec.stage * STAGE_SECONDS or (rows and elapsed > child.spec.stage * 0.8)
            if child.state == "waiting" and due:
                child.start(now)
                self._write_pid(child)

    def step(self, now: float, *, rows: bool) -> None:
        """One look at every process: start what is due, restart what died, measure memory now and then."""
        if self._bus is not None and self._bus.gone():
            self._restart_all(now)
            return
        self._start_due(now, rows=rows)
        for child in self.children:
            code = child.poll(now)
            if child.restarts != self._restarts.get(child.spec.name, 0):
                self._restarts[child.spec.name] = child.restarts
                self._write_pid(child)
            if code is not None:
                if code == GIVEN_UP:
                    self._note(f"{child.spec.name} has stopped for good; the rest goes on without it. {child.tail(1)}. Log: {child.log}")
                    continue
                if child.state == "failed":
                    raise ProblemFound(f"{child.spec.name} ended with {code} and will not do better:\n{child.tail()}")
                how = f"killed by signal {-code}" if code < 0 else f"exit {code}"
                self._note(f"{child.spec.name} died ({how}); it is started again. Log: {child.log}")
        if now - self._measured_at >= MEASURE_SECONDS:
            self._measured_at = now
            for child in self.everything():
                child.measure()

    def _restart_all(self, now: float) -> None:
        """The embedded bus keeps nothing: without it every role must begin again."""
        self.bus_restarts += 1
        self._note("the embedded bus died: what was on it and not yet stored is lost; the whole stack is started again")
        for child in self.children:
            child.kill()
        if self._bus:
            self._bus.kill()
        self._start_bus(now)
        environment_ = environment(self._options, self.where)
        fresh = {spec.name: spec for spec in specs(self.where, environment_)}
        for child in self.children:
            child.spec = fresh[child.spec.name]
            child.restarts += 1
            child.state = "waiting"
        self._stage_at = now
        self._start_due(now, rows=False)

    def _write_pid(self, child: Child) -> None:
        if pid := child.pid:
            write_pid(self.where.state, child.spec.name, pid)

    def ports(self) -> dict[str, int | None]:
        """Health port of each role, as the roles wrote them down."""
        return read_ports(self.where.state, [child.spec.name for child in self.children])

    def stop(self) -> float:
        """Take everything down, readers before the bus; returns the seconds it took."""
        began = time.monotonic()
        for child in self.children:
            child.terminate()
        self._await(self.children, began + STOP_SECONDS)
        for child in self.children:
            child.kill()
        if self._bus:
            self._bus.terminate()
            self._await([self._bus], time.monotonic() + 0.7)
            self._bus.kill()
        return time.monotonic() - began

    @staticmethod
    def _await(children: list[Child], until: float) -> None:
        while time.monotonic() < until and not all(child.gone() for child in children):
            time.sleep(0.03)
