"""The fake libnvidia-ml of xpulse.testing.nvml under the names that the tests use; the fixtures are beside this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from xpulse.testing import nvml
from xpulse.testing.nvml import CALLS_VARIABLE, LIBRARY, OLD_DRIVER_MISSING, STATE_VARIABLE, NoCompiler, build, calls, code, compiler

__all__ = [
    "CALLS_VARIABLE",
    "LIBRARY",
    "OLD_DRIVER_MISSING",
    "STATE_VARIABLE",
    "NoCompiler",
    "State",
    "build",
    "calls",
    "code",
    "compiler",
]
_OF_A_CARD: Final = re.compile(r"(?:_(\d+)|(every))__(.+)")


class State(nvml.State):
    """A State that also takes the short spelling of many tests: set(_1__field__186=code(4), every__temperature_celsius=71)."""

    def __init__(self, path: Path, profile: str | Mapping[str, Any] = "h100", *, count: int = 1) -> None:
        super().__init__(path, profile, count=count)

    def set(self, **values: object) -> None:
        """`_N__name` is a card's, `every__name` that of all; field__N, gpm__N, link__N__name and link__name are in their groups."""
        with self.changing():
            for name, value in values.items():
                card = _OF_A_CARD.fullmatch(name)
                if card is None:
                    self._set_of_node(name, value)
                    continue
                device = self.every if card[2] else self.device(int(card[1]))
                _set_of_card(device, card[3], value)

    def _set_of_node(self, name: str, value: object) -> None:
        if name.startswith("nvml"):
            self.fail(name, _number(value))
        elif name == "count":
            self.fail("nvmlDeviceGetCount", _number(value))
        elif name == "latency_ms":
            self.latency(_number(value) * 1000)
        else:
            super().set(**{name: value})


def _set_of_card(device: nvml.Device, name: str, value: object) -> None:
    match name.split("__"):
        case ["field", number]:
            device.field(int(number), value)
        case ["gpm"]:
            device.set(gpm_supported=value)
        case ["gpm", number]:
            device.gpm(int(number), value)
        case ["link", number, what]:
            device.link(int(number), **{what: value})
        case ["link", what]:
            device.link(None, **{what: value})
        case [symbol] if symbol.startswith("nvml"):
            device.put("symbols", **{symbol: value})
        case [plain]:
            device.set(**{plain: value})
        case _:
            raise ValueError(f"{name!r} is no name of the fake NVML's state")


def _number(value: object) -> int:
    return int(str(value).removeprefix("!"))
