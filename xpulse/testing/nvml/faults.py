"""Edits a fake's state so that calls fail, take time or hang, and counters begin anew; a name that means nothing is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from xpulse.testing.nvml.building import exported, keys

COUNTERS: Final = (
    "energy_millijoules",
    "pcie_replays",
    "ecc_corrected_volatile",
    "ecc_uncorrected_volatile",
    "violation_power_nanoseconds",
    "violation_thermal_nanoseconds",
    "violation_sync_boost_nanoseconds",
)
COUNTER_FIELDS: Final = (3, 4, 74, 75, 76, 83, 94, 95, 138, 139, 140, 141, 191, 197, 198, 201, 202, 203, 204, 251, 252, 253, 269, 270, 271)
"""What begins at zero when the driver is loaded; aggregate ECC counts and remapped rows are kept by the board."""


_NOT_READ: Final = frozenset({"about", "missing_symbols", "profiles"})
"""What a board's file says to readers of another kind."""


def check_names(names: Iterable[str]) -> None:
    """Raise ValueError for a name that the library never looks for: a test that sets it would test nothing."""
    if unknown := sorted(set(names) - keys() - _NOT_READ):
        raise ValueError(f"the fake libnvidia-ml knows no {', '.join(unknown)}; docs/guide/fake-nvml.md lists what a state may say")


def put(data: dict[str, Any], symbol: str, what: str, value: object | None) -> None:
    """Set or (None) end one fault of a symbol, keeping its others. Raises ValueError for a symbol that the library does not have."""
    if symbol not in exported() and symbol not in _versionless():
        raise ValueError(f"the fake libnvidia-ml has no symbol {symbol}")
    symbols = data.setdefault("symbols", {})
    before = symbols.get(symbol, {})
    now = dict(before) if isinstance(before, dict) else {"return": before}
    now.pop(what, None)
    if value is not None:
        now[what] = value
    symbols.pop(symbol, None)
    if now:
        symbols[symbol] = now


def reset_counters(device: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Zero what counts since the driver's start, where the card has such a counter at all."""
    for name in COUNTERS:
        if _counts(device.get(name, defaults.get(name))):
            device[name] = 0
    for number in map(str, COUNTER_FIELDS):
        if _counts(device.get("fields", {}).get(number, defaults.get("fields", {}).get(number))):
            device.setdefault("fields", {})[number] = 0


def _counts(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, dict) and "value" in value)


def _versionless() -> frozenset[str]:
    return frozenset(re.sub(r"_v\d+$|WithFlags", "", symbol) for symbol in exported())
