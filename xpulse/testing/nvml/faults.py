"""Edits a fake's state so that calls fail, take time or hang, and counters begin anew. Pure."""

from __future__ import annotations

from typing import Any, Final

COUNTERS: Final = (
    "energy_millijoules",
    "pcie_replays",
    "ecc_corrected_volatile",
    "ecc_uncorrected_volatile",
    "violation_power_nanoseconds",
    "violation_thermal_nanoseconds",
    "violation_sync_boost_nanoseconds",
)
COUNTER_FIELDS: Final = (3, 4, 74, 75, 76, 83, 94, 95, 138, 139, 140, 141, 191, 197, 198, 201, 202, 203, 204, 269, 270, 271)
"""What begins at zero when the driver is loaded; aggregate ECC counts and remapped rows are kept by the board."""


def put(data: dict[str, Any], symbol: str, what: str, value: object | None) -> None:
    """Set or (None) end one fault of a symbol, keeping its others."""
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
