"""Understands the text of an Xid: what a line says beyond its number, of its cause, its link, its registers and the action it asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_CAUSE: Final = re.compile(r"\bcaused by previous Xid ([0-9]{1,6})\b")
_HEX: Final = re.compile(r"\b0x([0-9A-Fa-f]{1,8})\b")
_LINK_NAMED: Final = re.compile(r"\bon link ([0-9]{1,4})\b")
_NVLINK5: Final = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_/ ]{0,31}?)\s+(?P<word>Fatal|Non-?fatal)\s+XC(?P<xc>[0-9]{1,4})\s+i(?P<i>[0-9]{1,4})\s+"
    r"Link (?P<link>-?[0-9]{1,4})\s+\((?P<registers>0x[0-9A-Fa-f]{1,8}(?:\s+0x[0-9A-Fa-f]{1,8}){0,15})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NvLink5:
    """What an Xid 144 to 150 says: unit, severity word, link (None where it is -1: none in particular), and the registers."""

    unit: str
    fatal: bool
    link: int | None
    intr_info: int
    error_status: int | None


def cause(text: str) -> int | None:
    """The number in `caused by previous Xid 149`."""
    match = _CAUSE.search(text)
    return None if match is None else int(match[1])


def recovery_codes(text: str) -> tuple[int | None, int | None]:
    """From and to of `GPU recovery action changed from 0x0 (None) to 0x2 (…)`: the last hexadecimal number is what holds now."""
    codes = [int(code, 16) for code in _HEX.findall(text)]
    if not codes:
        return None, None
    return (codes[-2] if len(codes) > 1 else None), codes[-1]


def link(text: str) -> int | None:
    """The number in `NVLink: fatal error detected on link 14(…)` of an Xid 74."""
    match = _LINK_NAMED.search(text)
    return None if match is None else int(match[1])


def nvlink5(text: str) -> NvLink5 | None:
    """The parts of an Xid 144 to 150; None where the text has another form."""
    match = _NVLINK5.search(text)
    if match is None:
        return None
    registers = [int(r, 16) for r in match["registers"].split()]
    number = int(match["link"])
    return NvLink5(
        unit=match["unit"].strip(),
        fatal=match["word"].lower() == "fatal",
        link=number if number >= 0 else None,
        intr_info=registers[0],
        error_status=registers[1] if len(registers) > 1 else None,
    )
