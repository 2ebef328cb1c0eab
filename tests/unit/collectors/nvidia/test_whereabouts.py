"""What the plugin notes while it asks: the call that hangs is put down to whom it asks about, never to an innocent card."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from collectors.nvidia.plugin import Plugin
from collectors.nvidia.settings import Nvidia
from collectors.nvidia.source import Source
from collectors.worker import FAST_AND_SLOW
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from tests.unit.collectors.nvidia.rig import ENV

__all__ = ["fake_nvml", "fake_nvml_library"]
SETTINGS: Mapping[str, Any] = {"pci_check": False}
Asked = dict[str, set[str]]
Make = Callable[..., tuple[Plugin, Asked]]


@pytest.fixture
def make(fake_nvml: nvml.State) -> Iterator[Make]:
    """A plugin on two cards, and where it was at each call of the driver, by symbol."""
    made = []

    def one(avoid: Mapping[str, str]) -> tuple[Plugin, Asked]:
        place = [""]
        asked: Asked = {}

        def note(key: str, uid: str) -> None:
            place[0] = key

        def wrap(symbol: str, find: Callable[[str], Any]) -> Callable[..., Any]:
            real = find(symbol)

            def call(*arguments: Any) -> Any:
                asked.setdefault(symbol, set()).add(place[0])
                return real(*arguments)

            return call

        env = replace(ENV, note=note, avoid=avoid)
        plugin = Plugin(Nvidia.model_validate(SETTINGS), env, Source(wrap))
        made.append(plugin)
        plugin.probe()
        return plugin, asked

    yield one
    for plugin in made:
        plugin.close()


def _read(plugin: Plugin) -> int:
    reading = plugin.read(FAST_AND_SLOW, time.monotonic() + 60.0)
    return len(reading.samples[0].samples)


def test_each_call_is_put_down_to_whom_it_asks_about(make: Make) -> None:
    plugin, asked = make({})
    assert _read(plugin) == 2
    assert asked["nvmlDeviceGetUUID"] == {"0", "1"}
    assert asked["nvmlDeviceGetTopologyCommonAncestor"] == {"topology"}
    assert asked["nvmlEventSetWait_v2"] == {"events"}
    assert asked["nvmlDeviceGetComputeRunningProcesses_v3"] == {"processes"}
    assert asked["nvmlSystemGetDriverVersion"] == {""}


@pytest.mark.parametrize(
    ("key", "symbol"),
    [
        ("topology", "nvmlDeviceGetTopologyCommonAncestor"),
        ("events", "nvmlEventSetWait_v2"),
        ("processes", "nvmlDeviceGetComputeRunningProcesses_v3"),
    ],
)
def test_what_an_earlier_process_hung_at_is_not_asked(make: Make, key: str, symbol: str) -> None:
    plugin, asked = make({key: ""})
    assert _read(plugin) == 2
    assert symbol not in asked


def test_a_card_that_an_earlier_process_hung_at_is_not_asked(make: Make) -> None:
    plugin, asked = make({"0": "nvidia:GPU-x"})
    assert _read(plugin) == 1
    assert asked["nvmlDeviceGetUUID"] == {"1"}


def test_no_call_about_a_card_is_made_from_nowhere(make: Make) -> None:
    plugin, asked = make({})
    _read(plugin)
    nowhere = {symbol for symbol, places in asked.items() if "" in places}
    assert nowhere <= {"nvmlInitWithFlags", "nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlErrorString"} | {
        symbol for symbol in asked if symbol.startswith("nvmlSystem")
    }
