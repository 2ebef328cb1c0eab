"""One plugin in a process of its own: probes, reads on schedule, and tells the agent over a pipe. A hung driver hangs only this.

Started as `python -m collectors.worker FD`; its order comes as one JSON line on stdin. It ends when the agent closes stdin or is gone.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collectors import frames
from collectors.contract import Env, Plugin, Ready
from collectors.registry import Misconfigured, make
from collectors.whereabouts import Notes
from schemas.identity import NodeRef

if TYPE_CHECKING:
    from collections.abc import Mapping

    from schemas.catalogue import Cadence

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
FAST: Final[frozenset[Cadence]] = frozenset({"fast"})
FAST_AND_SLOW: Final[frozenset[Cadence]] = frozenset({"fast", "slow"})


class Schedule:
    """When to read: at whole multiples of the interval on the wall clock, slow fields in every `slow_every`-th read, the first included."""

    def __init__(self, interval_ns: int, slow_every: int) -> None:
        self._interval_ns, self._slow_every = interval_ns, slow_every
        self._reads = 0
        self._last: tuple[int, int] | None = None
        """The tick of the last read, and the monotonic clock then."""
        self._target_ns: int | None = None

    def due(self) -> frozenset[Cadence]:
        """What the next read has to include; counts it."""
        slow = self._reads % self._slow_every == 0
        self._reads += 1
        return FAST_AND_SLOW if slow else FAST

    def wait_ns(self, now_ns: int) -> int:
        """Time to the next multiple, two intervals at most whatever the clock has done; a wait that ended early is not repeated."""
        target = (now_ns // self._interval_ns + 1) * self._interval_ns
        if target == self._target_ns:
            target += self._interval_ns
        self._target_ns = target
        return target - now_ns

    def skipped(self, now_ns: int, monotonic_ns: int) -> int:
        """How many multiples passed without a read since the last call, which is one per read; a clock that is set skips none."""
        tick = (now_ns + self._interval_ns // 2) // self._interval_ns
        last, self._last = self._last, (tick, monotonic_ns)
        if last is None:
            return 0
        went_by = (monotonic_ns - last[1] + self._interval_ns // 2) // self._interval_ns
        return max(0, min(tick - last[0], went_by) - 1)


def _unnoted(key: str, uid: str) -> None:
    """Nobody looks: a worker that a test made."""


class Worker:
    """Runs one plugin until `stopping` is set. `write` takes whole frames and raises BrokenPipeError once nobody listens."""

    def __init__(self, order: Mapping[str, Any], fd: int) -> None:
        self._order, self._fd = order, fd
        self.stopping = threading.Event()
        interval_ns = int(order["interval_ns"])
        self._schedule = Schedule(interval_ns, int(order["slow_every"]))
        self._deadline_seconds = float(order["read_deadline_seconds"])
        self._alive_seconds = float(order["alive_seconds"])
        state_dir = order.get("state_dir")
        self._env = Env(
            NodeRef(*order["node"]),
            order["boot_id"],
            order["agent_version"],
            interval_ns,
            Path(state_dir) if state_dir else None,
            note=Notes(int(order["whereabouts"])).note if "whereabouts" in order else _unnoted,
            avoid=order.get("avoid", {}),
        )

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def run(self) -> int:
        """0 when told to stop or after a trial that went well, 2 where plugin or settings are wrong, 70 where the plugin raised."""
        try:
            plugin = make(self._order["target"], self._order["settings"], self._env)
        except Misconfigured as error:
            self.write(frames.failed(str(error), misconfigured=True))
            return 2
        try:
            if self._order.get("trial"):
                return self._try(plugin)
            while not self.stopping.is_set():
                if self._probe(plugin):
                    self._read_until_stopped(plugin)
            return 0
        except BrokenPipeError:
            return 0
        except Exception as error:
            logging.getLogger("xpulse.agent").exception("the plugin raised")
            self.write(frames.failed(f"{type(error).__name__}: {error}"))
            return 70
        finally:
            plugin.close()

    def _try(self, plugin: Plugin) -> int:
        """One reading that is told to nobody; 75 (try again later, sysexits.h) where the source is unavailable."""
        if not isinstance(plugin.probe(), Ready):
            return 75
        plugin.read(FAST_AND_SLOW, time.monotonic() + self._deadline_seconds)
        return 0

    def _probe(self, plugin: Plugin) -> bool:
        self.write(frames.alive())
        found = plugin.probe()
        if isinstance(found, Ready):
            self.write(frames.up(len(found.devices)))
            return True
        self.write(frames.down(found.reason, found.retry_s))
        self._wait(found.retry_s)
        return False

    def _read_until_stopped(self, plugin: Plugin) -> None:
        while not self.stopping.is_set():
            skipped = self._schedule.skipped(time.time_ns(), time.monotonic_ns())
            started = time.monotonic_ns()
            reading = plugin.read(self._schedule.due(), time.monotonic() + self._deadline_seconds)
            self.write(frames.read(reading, duration_ns=time.monotonic_ns() - started, skipped=skipped))
            self._wait(self._schedule.wait_ns(time.time_ns()) / 1e9)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.stopping.wait(min(left, self._alive_seconds)):
            if left > self._alive_seconds:
                self.write(frames.alive())


def _end_with_agent(stopping: threading.Event) -> None:
    """Stop when stdin ends, and at once 1 s later: main may sit in a driver call that never returns."""
    while os.read(0, 4096):
        pass
    stopping.set()
    time.sleep(1)
    os._exit(0)


def main() -> int:
    if sys.platform == "linux":
        # Killed together with the agent, even where the agent was killed with -9 while this thread is stuck in the driver.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    order = json.loads(sys.stdin.buffer.readline())
    if os.getppid() != order["agent_pid"]:
        return 0
    # The agent's own module path was only for this interpreter; a vendor's Python tool started by a plugin must not get it.
    os.environ.pop("PYTHONPATH", None)
    if order["pythonpath"] is not None:
        os.environ["PYTHONPATH"] = order["pythonpath"]
    logging.basicConfig(level=logging.WARNING, format=f"%(levelname)s {order['name']}: %(message)s")
    worker = Worker(order, int(sys.argv[1]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        # They reach the whole process group, or cgroup (systemctl kill); the agent decides. Not SIG_IGN: a vendor's tool would inherit it.
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_end_with_agent, args=(worker.stopping,), daemon=True).start()
    return worker.run()


if __name__ == "__main__":
    sys.exit(main())
