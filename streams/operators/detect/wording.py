"""Puts numbers into words: with their unit, as people say it."""

from __future__ import annotations

from typing import Final

_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SAID: Final = {"Cel": "°C", "1": "", "": ""}


def quantity(value: float, unit: str, *, ratio: bool = False) -> str:
    """A value in a UCUM unit: `76.0 GiB`, `91 °C`, `93 %` where `ratio`, `1.41 GHz`, `3` for counts, `25 a minute`."""
    if unit.endswith("/min"):
        return f"{quantity(value, unit.removesuffix('/min'), ratio=ratio)} a minute"
    if ratio:
        return f"{value * 100:.3g} %"
    if unit == "By":
        step = 0
        while abs(value) >= 1024 and step < len(_BINARY) - 1:
            value, step = value / 1024, step + 1
        return f"{value:.1f} {_BINARY[step]}" if step else f"{value:.0f} B"
    if unit == "Hz":
        for size, name in ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz")):
            if abs(value) >= size:
                return f"{value / size:.3g} {name}"
    if unit == "s":
        return duration(value)
    if unit.startswith("{"):
        return f"{value:.0f}"
    return f"{value:.4g} {_SAID.get(unit, unit)}".rstrip()


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
