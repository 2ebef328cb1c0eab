"""In a process of its own: what reading costs above the NVML calls themselves, both in turn in one process, on one fake library.

The bare loop makes exactly the calls of one fast tick, each with the very arguments that the plugin made ready, and does nothing with
the answers: no reader can be cheaper. Prints one JSON object. Run by bench.agent, which sets the library and its state.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from collectors.contract import Env, Ready
from collectors.nvidia.plugin import Plugin
from collectors.nvidia.settings import Nvidia
from collectors.nvidia.source import Source
from collectors.worker import FAST, FAST_AND_SLOW
from schemas.identity import NodeRef

ENV = Env(NodeRef("bench", "bench"), "boot", "0", 10**9)
SETTINGS = Nvidia(processes=False, events=False, pci_check=False)
"""Only what each tick does; the lists and checks of every tenth second are in bench.agent's figures at 1 Hz."""

_TURNS = 20


class _Noting:
    """Notes the function and arguments of each call while `on`."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., int], tuple[Any, ...]]] = []
        self.names: Counter[str] = Counter()
        self.on = False

    def wrap(self, symbol: str, find: Callable[[str], Any]) -> Any:
        function = find(symbol)

        def noted(*arguments: Any) -> int:
            if self.on:
                self.calls.append((function, arguments))
                self.names[symbol] += 1
            return int(function(*arguments))

        return noted if symbol != "nvmlErrorString" else function


def _ready(plugin: Plugin) -> None:
    found = plugin.probe()
    if not isinstance(found, Ready):
        raise RuntimeError(f"the fake library cannot be read: {found}")
    for due in (FAST_AND_SLOW, FAST, FAST):  # the third tick has something to compare activity with
        plugin.read(due, time.monotonic() + 60)


def main(cycles: int) -> None:
    noting = _Noting()
    heard = Source(noting.wrap)
    listened = Plugin(SETTINGS, ENV, heard)
    _ready(listened)
    noting.on = True
    listened.read(FAST, time.monotonic() + 60)
    noting.on = False
    calls = noting.calls
    heard.unwrap()  # else the reads that are measured would go through the noting as well
    plugin = Plugin(SETTINGS, ENV)
    _ready(plugin)
    per_turn = max(1, cycles // _TURNS)
    cpu = {"read": 0, "bare": 0}
    wall = {"read": 0, "bare": 0}
    for _ in range(_TURNS):
        for name in cpu:
            began, at = time.process_time_ns(), time.perf_counter_ns()
            for _ in range(per_turn):
                if name == "read":
                    plugin.read(FAST, time.monotonic() + 60)
                else:
                    for function, arguments in calls:
                        function(*arguments)
            cpu[name] += time.process_time_ns() - began
            wall[name] += time.perf_counter_ns() - at
    done = per_turn * _TURNS
    json.dump(
        {
            "read_cpu_us": cpu["read"] / done / 1000,
            "bare_cpu_us": cpu["bare"] / done / 1000,
            "read_wall_us": wall["read"] / done / 1000,
            "bare_wall_us": wall["bare"] / done / 1000,
            "calls": dict(noting.names),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
